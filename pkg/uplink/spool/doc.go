// SPDX-License-Identifier: Apache-2.0

// Package spool answers one question: which batches has this node made that no
// server holds yet?
//
// A Spool is a queue on disk between the part that makes batches and the part
// that sends them. It keeps opaque bytes, numbers them, hands them out oldest
// first as often as asked, and forgets what was acknowledged. It is bounded by
// bytes, age and number; when a bound is met the oldest go first, counted. It
// does not know the network, nor what the bytes mean.
//
// # On disk
//
// A folder holds segment files and a file to lock. A segment's name tells its
// place in the order and the boot its batches belong to:
//
//	lock
//	000000000000002a.6cd0a1c1-7d44-4ac0-8a4e-e5a3bb1ff1f7.spool
//
// A segment is nothing but records; each is a header of 44 bytes and a payload.
// Numbers are little-endian, checksums CRC-32C.
//
//	 0  magic "dgn\x01"
//	 4  kind: 1 mark, 2 batch, 3 acknowledgement
//	 8  bytes of payload
//	12  checksum of the payload
//	16  sequence
//	24  samples in the batch, so that a loss can be told in samples unread
//	32  Unix time in nanoseconds
//	40  checksum of the 40 bytes before
//
// A mark begins every segment and holds the last sequence given out before it.
// An acknowledgement holds, as payload, the boot whose batches it speaks of.
//
// # Sequences
//
// Batches of one boot are numbered upwards and a number is never used twice: the
// newest segment of the boot is kept even when all its batches are acknowledged,
// so its mark and records always tell the last number used. A folder that
// knows nothing of the boot (new, wiped, or in memory), or in which damage was
// found, goes on from Config.Floor.
//
// # What survives
//
// Append returns after fdatasync, and a batch can be read only then, so what was
// sent is on disk and its number cannot be given out again after a crash. One
// sync an Append is affordable since a node makes a batch every few seconds.
// Acknowledgements are not synced: one that a crash loses costs a
// resend, which the server recognises.
//
// A crash in the middle of Append leaves a record cut short at the end of a
// segment; it is passed over. A segment is not appended to again after a
// restart. A damaged record elsewhere is skipped and counted; when its header is
// whole the samples it held are known, else the reader goes on at the next
// header whose checksum holds.
package spool
