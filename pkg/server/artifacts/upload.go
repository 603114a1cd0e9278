// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gocloud.dev/blob"
)

// An ID says which artifact is meant. Equal IDs with equal hashes are one upload.
type ID struct {
	Capture     string
	Name        string // as the HTTP API calls it
	Size        int64
	SHA256      []byte
	ContentType string
}

const maxName = 230 // a file name has 255 bytes, and the bucket adds a suffix

func (id ID) validate(largest int64) error {
	switch {
	case !token(id.Capture):
		return fmt.Errorf("%w: capture id %q", ErrInvalid, id.Capture)
	case id.Name == "" || len(id.Name) > maxName || strings.HasPrefix(id.Name, ".") || strings.ContainsFunc(id.Name, foreign):
		return fmt.Errorf("%w: name %q: letters, digits, '.', '_' and '-' make a name, at most %d of them", ErrInvalid, id.Name, maxName)
	case len(id.SHA256) != sha256.Size:
		return fmt.Errorf("%w: %s: a sha256 of %d bytes", ErrInvalid, id.Name, len(id.SHA256))
	case id.Size < 0 || id.Size > largest:
		return fmt.Errorf("%w: %s: %d bytes, at most %d are taken", ErrInvalid, id.Name, id.Size, largest)
	case len(id.ContentType) > maxName || strings.ContainsFunc(id.ContentType, func(r rune) bool { return r < ' ' || r > '~' }):
		return fmt.Errorf("%w: %s: content type %q", ErrInvalid, id.Name, id.ContentType)
	}
	return nil
}

func foreign(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
}

func token(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, foreign) && s[0] != '.'
}

// An Upload is one artifact on its way in. It is used by one goroutine, which
// must end it with Close.
type Upload struct {
	s    *Store
	id   ID
	path string
	file *os.File // nil when the artifact was stored before
	hash hash.Hash
	at   int64
	info Info

	stop  chan struct{} // closed when a newer upload of the same artifact takes over
	ended chan struct{} // closed by Close
	once  sync.Once
}

// Begin opens an upload where an earlier one stopped. Whoever begins last has it: a
// stream that was cut without noticing is displaced. An artifact that is stored
// already needs no more than Commit. Errors wrap ErrInvalid or ErrFull where that is the reason.
func (s *Store) Begin(ctx context.Context, id ID) (*Upload, error) {
	if err := id.validate(s.cfg.Bytes); err != nil {
		return nil, err
	}
	// The hash is in the name: other bytes under the same name are another upload.
	name := sha256.Sum256([]byte(id.Capture + "/" + id.Name + "/" + hex.EncodeToString(id.SHA256)))
	u := &Upload{
		s: s, id: id, path: filepath.Join(s.parts, hex.EncodeToString(name[:])), hash: sha256.New(),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	if err := s.claim(ctx, u); err != nil {
		return nil, err
	}
	if err := u.open(ctx); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

// claim makes u the one upload of its artifact.
func (s *Store) claim(ctx context.Context, u *Upload) error {
	ctx, cancel := context.WithTimeout(ctx, takeoverWait)
	defer cancel()
	for {
		s.mu.Lock()
		other := s.open[u.path]
		if other == nil {
			s.open[u.path] = u
			s.mu.Unlock()
			return nil
		}
		other.once.Do(func() { close(other.stop) })
		s.mu.Unlock()
		select {
		case <-other.ended:
		case <-ctx.Done():
			return fmt.Errorf("artifacts: %s: another upload of it does not end: %w", u.id.Name, ctx.Err())
		}
	}
}

func (u *Upload) open(ctx context.Context) error {
	info, err := u.s.stat(ctx, u.id.Capture, u.id.Name)
	switch {
	case err == nil && info.SHA256 == hex.EncodeToString(u.id.SHA256):
		u.at, u.info = u.id.Size, info
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s is stored already, with other bytes", ErrInvalid, u.id.Name)
	case !errors.Is(err, ErrNotFound):
		return err
	}
	f, err := os.OpenFile(u.path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return fmt.Errorf("artifacts: %w", full(err))
	}
	u.file = f
	if u.at, err = io.Copy(u.hash, io.LimitReader(f, u.id.Size)); err != nil {
		return fmt.Errorf("artifacts: read what came before: %w", err)
	}
	return u.s.room(u.id.Size - u.at)
}

// room says whether n more bytes fit: partial file and object exist side by side for a moment.
func (s *Store) room(n int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(s.parts, &st); err != nil {
		return fmt.Errorf("artifacts: statfs: %w", err)
	}
	if free := int64(st.Bavail) * st.Bsize; free-s.cfg.Spare < 2*n {
		return fmt.Errorf("artifacts: %w: %d bytes are free, %d stay so, %d are needed", ErrFull, free, s.cfg.Spare, 2*n)
	}
	return nil
}

// Offset is where the next chunk begins.
func (u *Upload) Offset() int64 { return u.at }

// Displaced is closed when a newer upload of the same artifact wants to go on.
func (u *Upload) Displaced() <-chan struct{} { return u.stop }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write takes the chunk at offset.
func (u *Upload) Write(offset int64, data []byte, crc uint32) error {
	if offset != u.at {
		return fmt.Errorf("%w: %s: chunk at %d, expected at %d", ErrInvalid, u.id.Name, offset, u.at)
	}
	if u.at+int64(len(data)) > u.id.Size {
		return fmt.Errorf("%w: %s: more than the %d bytes announced", ErrInvalid, u.id.Name, u.id.Size)
	}
	if crc32.Checksum(data, castagnoli) != crc {
		return fmt.Errorf("%w: %s: chunk at %d: crc32c", ErrCorrupt, u.id.Name, offset)
	}
	if u.file == nil {
		return fmt.Errorf("%w: %s is complete", ErrInvalid, u.id.Name)
	}
	if _, err := u.file.WriteAt(data, u.at); err != nil {
		return fmt.Errorf("artifacts: write: %w", full(err))
	}
	u.hash.Write(data)
	u.at += int64(len(data))
	return nil
}

// Commit makes the artifact durable. A wrong hash throws away what was
// received, since nobody can say which byte is wrong.
func (u *Upload) Commit(ctx context.Context) (Info, error) {
	if u.file == nil {
		return u.info, nil
	}
	if u.at != u.id.Size {
		return Info{}, fmt.Errorf("%w: %s: commit after %d of %d bytes", ErrInvalid, u.id.Name, u.at, u.id.Size)
	}
	if !bytes.Equal(u.hash.Sum(nil), u.id.SHA256) {
		_ = os.Remove(u.path)
		return Info{}, fmt.Errorf("%w: %s: sha256", ErrCorrupt, u.id.Name)
	}
	if err := u.publish(ctx); err != nil {
		return Info{}, fmt.Errorf("artifacts: store %s: %w", u.id.Name, full(err))
	}
	_ = os.Remove(u.path) // a leftover is swept later
	return u.s.stat(ctx, u.id.Capture, u.id.Name)
}

// publish copies the partial file into the bucket.
func (u *Upload) publish(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before Close, this abandons the object
	key := objectKey(u.id.Capture, u.id.Name)
	w, err := u.s.bucket.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType: u.id.ContentType,
		Metadata:    map[string]string{metaSHA256: hex.EncodeToString(u.id.SHA256)},
	})
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, io.NewSectionReader(u.file, 0, u.id.Size)); err != nil {
		cancel()
		_ = w.Close()
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if u.s.folder == "" {
		return nil // an object store answers when it has it
	}
	return syncPath(filepath.Join(u.s.folder, key))
}

// syncPath brings a file, and its name in its folder, to the disk.
func syncPath(path string) error {
	for _, p := range []string{path, path + ".attrs", filepath.Dir(path)} {
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		err = f.Sync()
		_ = f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// Close lets the artifact go; what was received stays for the next Begin.
func (u *Upload) Close() {
	if u.file != nil {
		_ = u.file.Close()
	}
	u.s.mu.Lock()
	if u.s.open[u.path] == u {
		delete(u.s.open, u.path)
	}
	u.s.mu.Unlock()
	close(u.ended)
}

// full marks the system's errors for a full disk.
func full(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
