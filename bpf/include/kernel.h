/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's types, as far as the programs read them. Kept by hand: a dumped
 * vmlinux.h has 130,000 lines and says less. Where a field lies comes from the
 * running kernel's BTF (CO-RE), so only its name and its type matter here.
 */
#pragma once

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false, true };

#define NULL ((void *)0)
#define COMM_LEN 16 /* TASK_COMM_LEN */

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
};

#define BPF_ANY 0

#define BPF_F_USER_STACK (1ULL << 8)
#define BPF_F_USER_BUILD_ID (1ULL << 11)

#define BPF_RB_NO_WAKEUP (1ULL << 0)

struct bpf_stack_build_id {
	__s32 status; /* 0 no frame, 1 build-id and offset, 2 address only */
	unsigned char build_id[20];
	union {
		__u64 offset;
		__u64 ip;
	};
};

struct bpf_perf_event_data; /* only handed on to helpers */

/* include/linux/sched.h */
#define PF_KTHREAD 0x00200000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
};

#pragma clang attribute pop
