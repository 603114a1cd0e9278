// SPDX-License-Identifier: Apache-2.0

// Package pprofio turns a profile.Batch into a pprof profile and back. Nothing
// else on the node knows pprof.
//
// # How a Batch looks in pprof
//
// Sample types come in the order of profile.Type and only those that the batch
// uses; the default is "cpu". Sample labels are strings, under the names of the
// Label constants.
//
// A location's address is its offset in the mapping's file, and each mapping
// begins at 0, since a location is shared by all processes that run the same
// code. Kernel code lies in the mapping "[kernel]", a module's in
// "[kernel]/module". A location that has a name and no mapping is synthetic.
//
// What pprof has no field for is written as comments, one fact each:
//
//	node: worker-3
//	agent_version: 0.1.0
//	boot_id: 7f0c…
//	window: 10s
//	lost: ring 12
package pprofio

// Names of sample labels, in pprof and in queries. They are valid in Prometheus.
const (
	LabelPID          = "pid"
	LabelComm         = "comm"
	LabelThread       = "thread"
	LabelContainerID  = "container_id"
	LabelNamespace    = "namespace"
	LabelPod          = "pod"
	LabelContainer    = "container"
	LabelWorkload     = "workload"
	LabelWorkloadKind = "workload_kind"
	LabelRank         = "rank"
	LabelDevice       = "device"
	LabelIoctl        = "ioctl"
)

// kernelPath is the mapping of the kernel itself and the first part of its modules'.
const kernelPath = "[kernel]"

// Meta is what is true of a whole profile.
type Meta struct {
	Node         string
	AgentVersion string
	BootID       string
	Ignored      []string // on decoding: names of labels that this version does not know, sorted
}

// Comments are written as key, separator, value.
const (
	commentNode    = "node"
	commentVersion = "agent_version"
	commentBootID  = "boot_id"
	commentWindow  = "window"
	commentLost    = "lost"
	commentSep     = ": "
)
