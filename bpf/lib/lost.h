/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a program had to drop, by place. User space reads the counts and says so. */
#pragma once

enum lost_place {
	LOST_RING,   /* the ring was full: a record */
	LOST_FOLLOW, /* the set of chosen processes was full: a child */
	LOST_PLACES,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOST_PLACES);
	__type(key, enum lost_place);
	__type(value, __u64);
} lost SEC(".maps");

static __always_inline void count_lost(enum lost_place place)
{
	__u64 *n = bpf_map_lookup_elem(&lost, &place);

	/* Atomic although per CPU: an interrupt in between adds to the same slot. */
	if (n)
		__sync_fetch_and_add(n, 1);
}
