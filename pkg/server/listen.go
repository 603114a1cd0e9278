// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// listenOn opens a port; its error names the flag to change.
func listenOn(flag, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return ln, nil
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fmt.Errorf("%s: %s is in use by another program: stop that one, or choose another address with --%s: %w", flag, addr, flag, err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s: %s is no address of this host: choose another with --%s: %w", flag, addr, flag, err)
	case errors.Is(err, unix.EACCES):
		return nil, fmt.Errorf("%s: %s needs a right that this user lacks: choose a port from 1024 on with --%s: %w", flag, addr, flag, err)
	}
	return nil, fmt.Errorf("%s: %w", flag, err)
}

// lockFolder keeps a second server out of the data folder. The system lets go of the lock when the
// process ends, in whatever way.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "server.lock"), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("data: lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data: %s belongs to a diagon-server that runs: stop that one, or choose another folder with --data", dir)
		}
		return nil, fmt.Errorf("data: lock %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil
}
