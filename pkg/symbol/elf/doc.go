// SPDX-License-Identifier: Apache-2.0

// Package elf reads what naming an address needs from an ELF file: the way from
// file offsets to virtual addresses, the build-id, the function symbols, and
// where further symbols are to be found.
//
// It is not debug/elf, for two reasons. The files belong to the processes that
// are watched, so every number in them may be a lie: here nothing is allocated,
// read or followed on the word of a header alone, each table has a limit, and
// what exceeds it is an error that says so. And files of gigabytes with millions of
// symbols must fit a small budget: a Table holds eight bytes a symbol and
// reads sizes and names from the file when one is asked for.
//
// Only 64-bit little-endian files are read, the machines diagon runs on.
// Compressed sections (SHF_COMPRESSED) are refused: none of those read here
// is ever compressed by a linker.
//
// Format: System V gABI chapter 4; Linux Standard Base for notes;
// "MiniDebugInfo" and "Debugging Information in Separate Files" in GDB's manual.
package elf
