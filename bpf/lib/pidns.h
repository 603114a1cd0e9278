/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The number that the reader's /proc gives a process. */
#pragma once

#include <bpf/bpf_core_read.h>

/*
 * Inode of the PID namespace that the reader's /proc counts in, set before
 * load; 0 is the initial one, which needs no search.
 */
const volatile __u32 pid_namespace;

#define PID_NAMESPACE_LEVELS 33 /* MAX_PID_NS_LEVEL + 1 */

/*
 * A process has a number in its own PID namespace and in each one around it.
 * bpf_get_ns_current_pid_tgid answers for the innermost only, which leaves out
 * every pod of a node that is itself a container (kind, minikube).
 */
static __noinline __u32 number_in_namespace(struct pid *pid)
{
	__u32 level = BPF_CORE_READ(pid, level);
	void *numbers = (void *)pid + bpf_core_field_offset(struct pid, numbers);
	struct upid upid;

	for (__u32 i = 0; i < PID_NAMESPACE_LEVELS; i++) {
		/* Or clang makes one bound of both, which Linux 6.1 does not take for one. */
		barrier_var(level);
		if (i > level)
			return 0;
		if (bpf_probe_read_kernel(&upid, sizeof(upid), numbers + i * sizeof(upid)))
			return 0;
		if (BPF_CORE_READ(upid.ns, ns.inum) == pid_namespace)
			return upid.nr;
	}
	return 0;
}

/* The thread's number; 0 when the reader cannot see it. task is one the verifier trusts. */
static __always_inline __u32 visible_tid(struct task_struct *task)
{
	if (!pid_namespace)
		return task->pid;
	return number_in_namespace(BPF_CORE_READ(task, thread_pid));
}

/* The process's number; 0 when the reader cannot see it. */
static __always_inline __u32 visible_pid(struct task_struct *task)
{
	if (!pid_namespace)
		return task->tgid;
	return number_in_namespace(BPF_CORE_READ(task, group_leader, thread_pid));
}
