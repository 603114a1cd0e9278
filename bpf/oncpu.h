/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#define STACK_DEPTH 127 /* frames a side; kernel.perf_event_max_stack allows 127 by default */
#define KERNEL_BYTES (STACK_DEPTH * sizeof(__u64))
#define USER_BYTES (STACK_DEPTH * sizeof(__u64))
#define USER_BUILD_ID_BYTES (STACK_DEPTH * sizeof(struct bpf_stack_build_id))

/* How the user half of a stack is written. */
enum oncpu_user_form {
	USER_ADDRESSES, /* __u64 each */
	USER_BUILD_IDS, /* struct bpf_stack_build_id each: the reader cannot see the process */
};

/* The frames come last, leaf first, and are sent only as far as they are filled. */
struct oncpu_sample {
	__u64 boot_ns;
	__u32 pid; /* as the reader's /proc counts it; 0 when it is not there */
	__u32 tid;
	char comm[COMM_LEN];
	__s32 kernel_bytes; /* filled at the start of frames, or -errno */
	__s32 user_bytes;   /* filled behind them, or -errno */
	enum oncpu_user_form user_form;
	__u32 reserved;
	__u64 frames[640]; /* room for both masks in oncpu.bpf.c: 1,024 + 4,096 bytes */
};
