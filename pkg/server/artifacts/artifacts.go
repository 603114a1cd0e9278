// SPDX-License-Identifier: Apache-2.0

// Package artifacts keeps the files that come of captures.
//
// An upload collects in a partial file beside the bucket, so that a cut one goes on
// where it stopped and no artifact is ever whole in memory. Once its size and its
// SHA-256 are right, it becomes an object of the bucket, which is a folder by default. Which
// captures exist, and who may write to one, is not decided here.
package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file:// is built in; s3:// and gs:// are one import each
	"gocloud.dev/gcerrors"

	"diagon.dev/diagon/pkg/server/periodic"
)

// Config is what an operator decides about artifacts.
type Config struct {
	Dir   string // for partial files, and for the bucket when URL is empty
	URL   string // of the bucket, as gocloud.dev/blob reads it; "" is a folder in Dir
	Bytes int64  // largest artifact
	Spare int64  // bytes that stay free on the disk of Dir
}

// DefaultConfig takes artifacts up to 4 GiB and leaves 256 MiB of the disk.
func DefaultConfig() Config { return Config{Bytes: 4 << 30, Spare: 256 << 20} }

// Validate names the field that is wrong.
func (c Config) Validate() error {
	if c.Bytes < 1<<20 {
		return fmt.Errorf("artifact-bytes: %d is less than 1 MiB", c.Bytes)
	}
	if c.Spare < 0 {
		return fmt.Errorf("artifact-spare: %d is negative", c.Spare)
	}
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return fmt.Errorf("artifact-url: %w", err)
	}
	if !blob.DefaultURLMux().ValidBucketScheme(u.Scheme) {
		return fmt.Errorf("artifact-url: scheme %q is not built into this program; it has: %s", u.Scheme, strings.Join(blob.DefaultURLMux().BucketSchemes(), ", "))
	}
	return nil
}

var (
	// ErrNotFound means that there is no such artifact.
	ErrNotFound = errors.New("no such artifact")
	// ErrFull means that the disk has no room for it.
	ErrFull = errors.New("no room on the disk")
	// ErrInvalid means that the upload is wrong in itself and must not be repeated as it is.
	ErrInvalid = errors.New("invalid upload")
	// ErrCorrupt means that bytes changed on their way: the upload may be begun anew.
	ErrCorrupt = errors.New("bytes are not those that were sent")
)

const (
	partialAge   = 24 * time.Hour // an upload not continued for so long is given up
	sweepEvery   = 10 * time.Minute
	takeoverWait = 5 * time.Second
)

// A Store holds artifacts. Its methods may be called from several goroutines.
type Store struct {
	cfg    Config
	bucket *blob.Bucket
	folder string // of the bucket, when it is one of ours: files in it are synced
	parts  string
	log    *slog.Logger

	mu   sync.Mutex
	open map[string]*Upload // by partial file
}

// Open opens the bucket and makes the folders that are missing.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Store, error) {
	s := &Store{cfg: cfg, parts: filepath.Join(cfg.Dir, "partial"), log: log, open: map[string]*Upload{}}
	if err := os.MkdirAll(s.parts, 0o750); err != nil {
		return nil, fmt.Errorf("artifacts: %w", err)
	}
	where := cfg.URL
	if where == "" {
		dir, err := filepath.Abs(filepath.Join(cfg.Dir, "bucket"))
		if err != nil {
			return nil, fmt.Errorf("artifacts: %w", err)
		}
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, fmt.Errorf("artifacts: %w", err)
		}
		// no_tmp_dir: a rename across file systems would not be one step.
		s.folder = dir
		where = (&url.URL{Scheme: "file", Path: dir, RawQuery: "no_tmp_dir=true"}).String()
	}
	var err error
	if s.bucket, err = blob.OpenBucket(ctx, where); err != nil {
		return nil, fmt.Errorf("artifacts: open bucket: %w", err)
	}
	return s, nil
}

// Close releases the bucket. Uploads must have ended.
func (s *Store) Close() error { return s.bucket.Close() }

// An Info describes a stored artifact.
type Info struct {
	Size        int64
	ContentType string
	SHA256      string // lower-case hex
	Modified    time.Time
}

func objectKey(capture, name string) string { return "captures/" + capture + "/" + name }

// metaSHA256 is the name of the attribute that carries an object's hash.
const metaSHA256 = "sha256"

// Read opens a stored artifact; the caller closes it.
func (s *Store) Read(ctx context.Context, capture, name string) (io.ReadSeekCloser, Info, error) {
	info, err := s.stat(ctx, capture, name)
	if err != nil {
		return nil, Info{}, err
	}
	r, err := s.bucket.NewReader(ctx, objectKey(capture, name), nil)
	if err != nil {
		return nil, Info{}, fmt.Errorf("artifacts: read %s: %w", name, err)
	}
	return r, info, nil
}

func (s *Store) stat(ctx context.Context, capture, name string) (Info, error) {
	a, err := s.bucket.Attributes(ctx, objectKey(capture, name))
	if gcerrors.Code(err) == gcerrors.NotFound {
		return Info{}, fmt.Errorf("artifact %q of capture %q: %w", name, capture, ErrNotFound)
	}
	if err != nil {
		return Info{}, fmt.Errorf("artifacts: %s: %w", name, err)
	}
	return Info{Size: a.Size, ContentType: a.ContentType, SHA256: a.Metadata[metaSHA256], Modified: a.ModTime}, nil
}

// Delete removes every artifact of a capture.
func (s *Store) Delete(ctx context.Context, capture string) error {
	list := s.bucket.List(&blob.ListOptions{Prefix: objectKey(capture, "")})
	for {
		o, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("artifacts: list capture %q: %w", capture, err)
		}
		if err := s.bucket.Delete(ctx, o.Key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return fmt.Errorf("artifacts: delete %s: %w", o.Key, err)
		}
	}
}

// Run removes partial files that nobody goes on with, until ctx is done.
func (s *Store) Run(ctx context.Context) error {
	s.sweep(time.Now())
	return periodic.Run(ctx, sweepEvery, func(context.Context) { s.sweep(time.Now()) })
}

func (s *Store) sweep(now time.Time) {
	entries, err := os.ReadDir(s.parts)
	if err != nil {
		s.log.Warn("cannot look for abandoned uploads", "err", err)
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < partialAge {
			continue
		}
		path := filepath.Join(s.parts, e.Name())
		s.mu.Lock()
		_, busy := s.open[path]
		s.mu.Unlock()
		if busy {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("cannot remove an abandoned upload", "path", path, "err", err)
			continue
		}
		s.log.Info("abandoned upload is removed", "path", path, "bytes", info.Size())
	}
}
