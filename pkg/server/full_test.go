// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	diagonv1 "diagon.dev/diagon/api/diagon/v1"
)

// smallDisk is a file system of so many MiB; making one needs root.
func smallDisk(t *testing.T, mib string) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+mib+"m")
	if err == syscall.EPERM {
		t.Skip("mounting a small disk needs root")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill leaves nothing free and returns the file to remove.
func fill(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "ballast")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
	return name
}

func TestOnAFullDiskTheServerStartsRefusesAndRecovers(t *testing.T) {
	cfg := testConfig(t)
	cfg.Data, cfg.Spare = smallDisk(t, "128"), 16<<20
	s := start(t, cfg)
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	if durable, _, err := push(t, c, batch(t, "n", 1, 5)); err != nil || durable != 1 {
		t.Fatalf("with room: %d, %v", durable, err)
	}
	s.Stop()

	for name, dir := range map[string]string{"with data from before": cfg.Data, "with an empty folder": smallDisk(t, "64")} {
		t.Run(name, func(t *testing.T) {
			ballast := fill(t, dir)
			cfg.Data = dir
			s := start(t, cfg)
			c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
			a := connect(t, c, "n", "i")
			if _, _, err := push(t, c, batch(t, "n", 2, 1)); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("push = %v, want RESOURCE_EXHAUSTED", err)
			}
			call(t, s, "GET", "/readyz", "", http.StatusServiceUnavailable, nil)
			call(t, s, "GET", "/healthz", "", http.StatusOK, nil)
			a.cancel()

			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			s.checkRoom()
			if durable, _, err := push(t, c, batch(t, "n", 2, 1)); err != nil || durable != 2 {
				t.Fatalf("with room again: %d, %v", durable, err)
			}
			a = connect(t, c, "n", "i")
			hear[*diagonv1.BackendMessage_Registration](a)
			s.Stop()
			s = start(t, cfg)
			want := int64(1)
			if name == "with data from before" {
				want = 6
			}
			if got := stored(t, s, ""); got != want {
				t.Errorf("the store holds %d samples, want %d", got, want)
			}
		})
	}
}

func TestADiskThatFillsWhileTheServerRuns(t *testing.T) {
	cfg := testConfig(t)
	cfg.Data, cfg.Spare = smallDisk(t, "128"), 16<<20
	s := start(t, cfg)
	c := dial(t, s.GRPCAddr(), insecure.NewCredentials())
	a := connect(t, c, "n", "i")
	hear[*diagonv1.BackendMessage_Registration](a)
	a.cancel()
	waitFor(t, "the node is gone", func() bool { return !nodeOf(t, s, "n").Connected })

	ballast := fill(t, cfg.Data)
	// Somebody writes a record until the bus has noticed.
	for i := 0; s.bus.Up() == nil; i++ {
		if i == 200 {
			t.Fatal("200 registrations went onto a full disk")
		}
		registers(connect(t, c, "m", fmt.Sprint("i", i)))
	}
	s.checkRoom()
	call(t, s, "GET", "/readyz", "", http.StatusServiceUnavailable, nil)
	if _, _, err := push(t, c, batch(t, "n", 1, 1)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("push = %v, want RESOURCE_EXHAUSTED", err)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s.checkRoom()
	call(t, s, "GET", "/readyz", "", http.StatusOK, nil)
	if durable, _, err := push(t, c, batch(t, "n", 1, 1)); err != nil || durable != 1 {
		t.Errorf("with room again: %d, %v", durable, err)
	}
	waitFor(t, "the node can register again", func() bool { return registers(connect(t, c, "n", "i2")) })
}

// registers says whether the registration was granted, and ends the stream.
func registers(a *agent) bool {
	defer a.cancel()
	select {
	case <-a.heard:
		return true
	case <-a.gone:
		return false
	}
}
