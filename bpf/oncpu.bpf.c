// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * oncpu - which code is each CPU running?
 *
 *   hook  perf_event (cpu-clock), one per CPU, Config.Hz times a second;
 *         sched_process_fork while only chosen processes are sampled
 *   out   samples: one struct oncpu_sample per firing, cut to what it fills
 *   lost  LOST_RING, LOST_FOLLOW
 *   needs Linux 5.11 (ring buffer, bpf_get_current_task_btf), BTF
 *
 * Stacks by frame pointers. No filter by name and no adding-up: the kernel half
 * reports facts, the Go half gives them meaning.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "lib/lost.h"
#include "lib/pidns.h"
#include "oncpu.h"

/* Set before load; the verifier then drops the branches not taken. */
const volatile bool want_idle;
const volatile bool want_chosen; /* only the processes in chosen */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* resized before load: CPUs x rate x drain */
	__type(value, struct oncpu_sample);
} samples SEC(".maps");

/* The processes to sample, by visible_pid. Shrunk to one before load when all are. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, __u32);
	__type(value, __u8);
} chosen SEC(".maps");

/* A record does not fit on the 512-byte stack. perf_event programs do not nest on a CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct oncpu_sample);
} scratch SEC(".maps");

static __always_inline bool is_idle(void)
{
	return (__u32)bpf_get_current_pid_tgid() == 0;
}

static __always_inline bool is_chosen(__u32 pid)
{
	return bpf_map_lookup_elem(&chosen, &pid) != NULL;
}

/* What bpf_get_stack filled; an errno fills nothing. The mask tells the verifier the bound. */
static __always_inline __u64 filled(__s64 bytes, __u64 mask)
{
	return bytes > 0 ? bytes & mask : 0;
}

/*
 * A kernel thread has no user half, though it may borrow an address space. Of a
 * process that the reader cannot see, nobody could say later what an address
 * meant, so the kernel turns it into build-id and file offset here and now.
 */
static __always_inline __s64 user_stack(void *ctx, struct task_struct *task, struct oncpu_sample *s,
					void *to)
{
	if (task->flags & PF_KTHREAD)
		return 0;
	if (s->pid)
		return bpf_get_stack(ctx, to, USER_BYTES, BPF_F_USER_STACK);

	s->user_form = USER_BUILD_IDS;
	return bpf_get_stack(ctx, to, USER_BUILD_ID_BYTES, BPF_F_USER_STACK | BPF_F_USER_BUILD_ID);
}

SEC("perf_event")
int oncpu(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task;
	struct oncpu_sample *s;
	__u64 kernel, user;
	__u32 pid, zero = 0;

	if (!want_idle && is_idle())
		return 0;

	task = bpf_get_current_task_btf();
	pid = visible_pid(task);
	if (want_chosen && !is_chosen(pid))
		return 0;

	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!s)
		return 0;

	s->boot_ns = bpf_ktime_get_boot_ns();
	s->pid = pid;
	s->tid = visible_tid(task);
	bpf_get_current_comm(s->comm, sizeof(s->comm));
	s->user_form = USER_ADDRESSES;

	s->kernel_bytes = bpf_get_stack(ctx, s->frames, KERNEL_BYTES, 0);
	kernel = filled(s->kernel_bytes, 1023);
	s->user_bytes = user_stack(ctx, task, s, (void *)s->frames + kernel);
	user = filled(s->user_bytes, 4095);

	/* No wake-up: the reader drains on a timer, 1 us a sample instead of 28-75. */
	if (bpf_ringbuf_output(&samples, s, sizeof(*s) - sizeof(s->frames) + kernel + user,
			       BPF_RB_NO_WAKEUP))
		count_lost(LOST_RING);
	return 0;
}

/*
 * Whoever a chosen process forks is chosen too. Anyone else who gets a number
 * is not, even if a chosen process had that number once: so nothing need be
 * removed at exit, and the work of exiting is still sampled.
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(follow, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = visible_pid(parent), pid = visible_pid(child);
	__u8 one = 1;

	if (!pid || pid == parent_pid)
		return 0;
	if (!is_chosen(parent_pid))
		bpf_map_delete_elem(&chosen, &pid);
	else if (bpf_map_update_elem(&chosen, &pid, &one, BPF_ANY))
		count_lost(LOST_FOLLOW);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
