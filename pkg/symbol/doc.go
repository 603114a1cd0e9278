// SPDX-License-Identifier: Apache-2.0

// Package symbol answers one question: what is the function at this address
// called? It does so for the kernel, its modules and BPF programs, ELF files, Go
// programs, the vdso, and code that a runtime made and wrote a perf map for.
//
// It is a stage: Into fills in the Location of each frame and passes the sample
// on. It unwinds nothing, and knows nothing of containers: a process is its directory in
// /proc, and files are opened as that process sees them.
//
// # What a Location says
//
// Equal places give the same pointer, within a process and across processes, so
// that stacks can be compared by pointer. Where a function has a name but no lines,
// all addresses in it are one place, and Offset is the function's start in the
// file. With lines (Go) there is one place for each line, or for each chain of lines
// where calls were inlined; Offset is the function's start here too, so that a
// place is the same on every node. Without a name, Offset is that of the very
// instruction, and with the build-id whoever has the file can name it later: for a
// return address that is the last byte of the call, not the byte behind it. Kernel offsets
// count from the start of the kernel's or the module's text, which lies elsewhere after every boot.
//
// Mapping is nil only for an address that lay in no mapping, or in a process that could not be read.
//
// # What it promises
//
// No wrong name: files are told apart by device, inode, size and times, opened
// through /proc/PID/map_files or checked against the inode that is mapped; what a
// process was is not mixed up with what it became by exec, nor with another process
// of the same number. When in doubt the frame stays without a name and a reason is counted
// in Stats. What remains: a process that executed another program between the sample and
// the first look at it, where both are at the same addresses.
//
// Bounded memory: tables hold eight bytes a function and are dropped, least
// recently used first; names stay in the files and are read when asked for;
// what is remembered of addresses and places has limits in Config. A file is never read whole.
//
// Bounded time: what may block, which is every file and much of /proc, is done by
// a few goroutines, and a sample waits for them for Config.Wait altogether.
//
// # Where files are looked for
//
// A mapped file: /proc/PID/map_files/START-END, /proc/PID/root/PATH, /proc/PID/exe, and
// for a process that ended, PATH on the host. A debug file: by build-id below
// /usr/lib/debug/.build-id, then by .gnu_debuglink, in the process's root and then
// in the host's. A perf map: /tmp/perf-PID.map in the process's root. Paths are
// followed without leaving the process's root, and nothing but regular files is opened.
//
// # Roads not taken
//
// The file's bytes are not mapped into memory: pages touched would count as the
// agent's. Tables are not shared by build-id, which is the word of whoever made
// the file. Processes are not told apart by start time: it stays the same over an exec,
// and reading it costs more than everything else done for a sample.
package symbol
