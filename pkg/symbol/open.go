// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"diagon.dev/diagon/pkg/procmaps"
)

// A fileID is a file and its content: an inode number alone is used again as
// soon as its file is deleted.
type fileID struct {
	dev, inode   uint64
	size         int64
	mtime, ctime int64 // nanoseconds
}

// isLocal reports whether a file lies on a file system of this machine's own disks or memory, where a read
// ends. Others, on the network or in the hands of a process, may never answer.
func isLocal(f *os.File) bool {
	var fs unix.Statfs_t
	if err := handle(f, func(fd int) error { return unix.Fstatfs(fd, &fs) }); err != nil {
		return false
	}
	switch uint32(fs.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC,
		unix.RAMFS_MAGIC, unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.HUGETLBFS_MAGIC:
		return true
	case unix.OVERLAYFS_SUPER_MAGIC: // of layers that lie on the node's disk
		return true
	}
	return false
}

var (
	errNotRegular = errors.New("not a regular file")
	errReplaced   = errors.New("the path leads to another file than the one mapped")
)

// handle calls use with f's descriptor, which stays open meanwhile.
func handle(f *os.File, use func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = use(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// openPath opens a path without opening what it leads to: a FIFO or a device
// does not notice. A path that comes from a process is followed inside the
// process's own root, so that no link leads out of it.
func openPath(dir int, path string, resolve uint64, flags int) (int, error) {
	for try := 1; ; try++ {
		fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: uint64(unix.O_PATH | unix.O_CLOEXEC | flags), Resolve: resolve})
		// EAGAIN: something on the way was renamed meanwhile.
		if err != unix.EINTR && err != unix.EAGAIN || try == 10 {
			return fd, err
		}
	}
}

// openRegular turns a descriptor of a path into one of the file's bytes, if it
// is a regular file. It closes the former.
func openRegular(pathFD int) (*os.File, fileID, error) {
	defer unix.Close(pathFD)
	var st unix.Stat_t
	if err := unix.Fstat(pathFD, &st); err != nil {
		return nil, fileID{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fileID{}, errNotRegular
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(pathFD), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fileID{}, err
	}
	return os.NewFile(uintptr(fd), "symbols"), identify(&st), nil
}

func identify(st *unix.Stat_t) fileID {
	return fileID{dev: st.Dev, inode: st.Ino, size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano()}
}

// openMapped opens the file behind a mapping of a process. The entry in map_files is
// the file itself, also when it is deleted; it needs CAP_CHECKPOINT_RESTORE.
// Without, the path is followed in the process's root, and the inode tells whether
// it still leads to the file. A process that ended has neither; its files may
// still lie where the host sees them too.
func openMapped(dir *os.File, m *procmaps.Mapping, files string) (*os.File, fileID, error) {
	fd, err := -1, error(nil)
	err = handle(dir, func(proc int) (err error) {
		fd, err = openPath(proc, fmt.Sprintf("map_files/%x-%x", m.Start, m.End), 0, 0)
		if err == nil {
			return nil
		}
		if fd, err = openIn(proc, m.Path); err == nil {
			if err = checkMapped(fd, m); err == nil {
				return nil
			}
			unix.Close(fd)
		}
		first := err
		if fd, err = openPath(proc, "exe", 0, 0); err != nil {
			return first
		}
		if err = checkMapped(fd, m); err != nil {
			unix.Close(fd)
			return first
		}
		return nil
	})
	if err != nil && gone(err) {
		if fd, err = openBelow(files, m.Path); err == nil {
			if err = checkMapped(fd, m); err != nil {
				unix.Close(fd)
			}
		}
	}
	if err != nil {
		return nil, fileID{}, err
	}
	return openRegular(fd)
}

// openIn opens a path inside a process's root.
func openIn(proc int, path string) (int, error) {
	root, err := openPath(proc, "root", 0, unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	return openPath(root, path, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS, 0)
}

// openBelow opens a path below a directory of this process's own.
func openBelow(dir, path string) (int, error) {
	root, err := openPath(unix.AT_FDCWD, dir, 0, unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	return openPath(root, path, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS, 0)
}

// checkMapped tells whether a path leads to the file that is mapped. While it is
// mapped its inode number is its own within its file system.
func checkMapped(fd int, m *procmaps.Mapping) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Ino != m.Inode {
		return errReplaced
	}
	if unix.Major(st.Dev) == m.Major && unix.Minor(st.Dev) == m.Minor {
		return nil
	}
	// These show another device in stat than in maps.
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	switch uint32(fs.Type) {
	case unix.OVERLAYFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
		return nil
	}
	return errReplaced
}

// gone reports whether an error says that the process has ended.
func gone(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT)
}
