// SPDX-License-Identifier: Apache-2.0

package profile

import "time"

// A Type is a kind of measurement that has a stack: one pprof sample type.
type Type uint8

// The sample types, in the order in which a profile carries them.
const (
	Samples      Type = iota // how often a stack was seen on a CPU
	CPU                      // time on a CPU
	OffCPU                   // time blocked, by the stack that blocked
	Ioctl                    // driver calls
	IoctlTime                // time in driver calls
	Launch                   // work handed to a device
	Starved                  // host time while the process's own accelerators were idle
	DeviceBusy               // time a device was busy
	DeviceEnergy             // energy a device drew
	DeviceOp                 // time of device operations; captures only

	NumTypes = iota
)

// typeNames holds each type's pprof name and unit.
var typeNames = [NumTypes]struct{ name, unit string }{
	Samples:      {"samples", "count"},
	CPU:          {"cpu", "nanoseconds"},
	OffCPU:       {"offcpu", "nanoseconds"},
	Ioctl:        {"ioctl", "count"},
	IoctlTime:    {"ioctl_time", "nanoseconds"},
	Launch:       {"launch", "count"},
	Starved:      {"starved", "nanoseconds"},
	DeviceBusy:   {"device_busy", "nanoseconds"},
	DeviceEnergy: {"device_energy", "millijoules"},
	DeviceOp:     {"device_op", "nanoseconds"},
}

// String is the type's name in pprof and in the HTTP API.
func (t Type) String() string {
	if int(t) >= NumTypes {
		return "unknown"
	}
	return typeNames[t].name
}

// Unit is the type's unit in pprof.
func (t Type) Unit() string {
	if int(t) >= NumTypes {
		return ""
	}
	return typeNames[t].unit
}

// ParseType finds a type by its name.
func ParseType(name string) (Type, bool) {
	for t := range NumTypes {
		if typeNames[t].name == name {
			return Type(t), true
		}
	}
	return 0, false
}

// Values holds one number per Type; zero where a sample has none.
type Values [NumTypes]int64

// Add adds each of v's numbers to its own.
func (a *Values) Add(v Values) {
	for i := range v {
		a[i] += v[i]
	}
}

// A Subject is the process a sample belongs to and what that process is part
// of. It is immutable and shared by pointer between the samples of one process.
// Every field but PID may be empty: what is not known is not guessed.
type Subject struct {
	PID          int    // as the agent's own /proc counts it
	Comm         string // the process's name
	ContainerID  string // 64 hex digits, from the cgroup path
	Namespace    string // Kubernetes namespace
	Pod          string
	Container    string
	Workload     string // what owns the pod: a JobSet's, Job's, Deployment's name
	WorkloadKind string
	Rank         string // of a distributed job
}

// A Sample is one observation: who, where, when, how much.
type Sample struct {
	Time    time.Time
	PID     int      // process, as the agent's own /proc counts it; 0 when it is in no /proc that the agent sees
	TID     int      // 0 when PID is
	Thread  string   // the thread's name
	Subject *Subject // nil until pkg/subject has seen the sample
	Stack   Stack    // leaf first
	Values  Values
	Device  string // the accelerator the sample speaks of, "" for none
	Request string // the driver request, "" for none: label "ioctl"
}

// A Reading is a number without a stack: a gauge or a counter of the host or of
// a device.
type Reading struct {
	Time   time.Time
	Metric string // Prometheus style with base unit: "host_memory_used_bytes"
	Labels Labels
	Value  float64
}

// A Label is a name and its value. Names are valid in Prometheus.
type Label struct{ Name, Value string }

// Labels are sorted by name and hold each name once.
type Labels []Label

// Get returns the value of name, or "".
func (l Labels) Get(name string) string {
	for _, label := range l {
		if label.Name == name {
			return label.Value
		}
	}
	return ""
}

// A Loss says how much was dropped, and where. Place names come from a fixed
// list per package: "ring", "exited", "window", "spool".
type Loss struct {
	Place string
	Count uint64
}

// A Record is one line of a Batch: everything that was seen of one stack of one
// thread name of one subject in the batch's window.
type Record struct {
	Subject *Subject
	Thread  string
	Device  string
	Request string
	Stack   Stack
	Values  Values
}

// A Batch is what leaves the node: one window's samples added up, with the
// readings and the losses of the same time.
type Batch struct {
	Start, End time.Time
	Records    []Record
	Readings   []Reading
	Losses     []Loss
	PeriodNS   int64 // CPU time one firing of the sampler stands for; 0 when no CPU samples were taken
}
