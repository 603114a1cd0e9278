// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// patient is the environment variable that makes the test program a patient.
const patient = "DOCTOR_TEST_PATIENT"

// circumstances that the patient puts itself into.
type circumstances struct {
	Drop  []int // capabilities to do without
	Mount bool  // a /proc of its own
}

func bePatient() {
	var c circumstances
	err := json.Unmarshal([]byte(os.Getenv(patient)), &c)
	if err == nil && c.Mount {
		err = mountProc()
		c.Mount = false
	}
	if err == nil && len(c.Drop) > 0 {
		err = dropAndStartAnew(c)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		err = json.NewEncoder(os.Stdout).Encode(Examine(ctx, DefaultConfig()))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "patient:", err)
		os.Exit(1)
	}
}

func mountProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// dropAndStartAnew takes capabilities out of the bounding set: root comes out of the next
// exec without them, on every thread.
func dropAndStartAnew(c circumstances) error {
	runtime.LockOSThread()
	for _, capability := range c.Drop {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	c.Drop = nil
	told, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.Setenv(patient, string(told)); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", os.Args, os.Environ())
}

// contextUntil is done once the channel is closed.
func contextUntil(done <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
