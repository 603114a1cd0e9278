// SPDX-License-Identifier: Apache-2.0

// Package duckdb keeps profiles in DuckDB files, without a database server.
//
// # One file an hour
//
// A partition is one database file: the batches that began in one hour, and the
// dictionaries (stacks, frames, subjects, series) that they need. An hour that
// outgrows Config.PartitionBytes goes on in a second file. DuckDB does not give
// space back to the file system when rows are deleted, so one database with a
// DELETE would keep its size; a file that is deleted is gone, dictionaries and
// all, whatever DuckDB does inside. The price is that each hour writes again the stacks
// that it shares with the hour before, some hundred kilobytes for a program.
//
// All partitions are attached to one DuckDB in memory, so Config.MemoryBytes bounds them
// together; of those that nobody asks for, Config.MaxAttached stay open.
//
// All batches of one Append go into the partition of the newest of them, in
// one transaction. DuckDB commits to one attached file at a time, so this is what makes
// an Append all or none. A partition may therefore hold rows that are older than its
// hour; what it holds is read when it is opened, and questions go by that, not
// by its name. Batches from the future go into the present hour, or no
// retention would reach them.
//
// # One writer
//
// One goroutine writes. Calls of Append that wait for it are committed together, which
// is what makes a commit's fsync affordable. Which batches are held is known in memory,
// as ranges of sequences, and read from the files at the start.
//
// A commit that fails leaves two questions: whether its rows are durable after all,
// and whether DuckDB still lets the file be used. Both are answered by detaching and
// attaching the file anew (batchWriter.settle). Checkpoints are the writer's own, after a commit
// and not within it, so that one that fails for want of space costs nothing but a longer log.
//
// # Damage
//
// A file whose checksums do not fit, or that ends early, is renamed to .corrupt and the rest is served;
// retention deletes it in its time. Whatever else goes wrong with a file (no
// descriptors, no memory, no permission, no space) leaves it where it is.
//
// # SQL by hand
//
// Stop the server, or copy a file and its .wal; then duckdb FILE. schema.go describes the tables.
package duckdb
