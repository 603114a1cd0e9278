// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/server/periodic"
)

const (
	retainEvery  = time.Minute
	retainWithin = 10 * time.Minute
	roomEvery    = 5 * time.Second
)

// retain drops what is too old or too much, until ctx is done.
func (s *Server) retain(ctx context.Context) error {
	s.retainOnce(ctx)
	return periodic.Run(ctx, retainEvery, s.retainOnce)
}

func (s *Server) retainOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, retainWithin)
	defer cancel()
	bytes, err := s.store.Retain(ctx, s.cfg.Retention, time.Now())
	if err != nil {
		if ctx.Err() == nil {
			s.log.Error("retention failed", "err", err)
		}
		return
	}
	s.storeBytes.Store(bytes)
}

// watchRoom looks at the disk, so that a full one is known before anybody sends.
func (s *Server) watchRoom(ctx context.Context) error {
	return periodic.Run(ctx, roomEvery, func(context.Context) { s.checkRoom() })
}

func (s *Server) checkRoom() {
	why := s.room()
	had := s.noRoom.Swap(&why)
	s.ingest.Hold(why)
	switch {
	case why != nil && (had == nil || *had == nil):
		s.log.Error("disk has no room: profiles are refused until it has", "err", why)
	case why == nil && had != nil && *had != nil:
		s.log.Info("disk has room again")
	}
	if why == nil {
		if err := s.bus.Revive(); err != nil {
			s.log.Error("cannot go on after a full disk", "err", err)
		}
	}
}

// room says why the disk of the data folder takes no more; nil when it does.
func (s *Server) room() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(s.cfg.Data, &fs); err != nil {
		return fmt.Errorf("data: statfs %s: %w", s.cfg.Data, err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < s.cfg.Spare {
		return fmt.Errorf("the disk of %s has %d MiB free and %d are kept free: make room, lower --retention-bytes, or lower --disk-spare",
			s.cfg.Data, free>>20, s.cfg.Spare>>20)
	}
	return nil
}
