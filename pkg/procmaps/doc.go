// SPDX-License-Identifier: Apache-2.0

// Package procmaps reads /proc/PID/maps: which file, or what else, lies behind
// each address of a process.
//
// It parses and finds; it opens no mapped file and does not decide when a
// process's maps are out of date.
//
// Format: proc_pid_maps(5), and show_map_vma in the kernel's fs/proc/task_mmu.c.
package procmaps
