// SPDX-License-Identifier: Apache-2.0

package duckdb

import (
	"strings"

	"diagon.dev/diagon/pkg/profile"
)

// schemaVersion is written into each partition. A file of another version is
// refused with a message, never rewritten.
const schemaVersion = 1

// schema makes a partition's tables. Times are Unix nanoseconds; identifiers are
// described in ids.go.
//
// There are no keys and no indexes: DuckDB would hold them in memory and check
// each row of a bulk insert. A dictionary row may therefore occur twice, and
// every reader of a dictionary takes any of the equal rows. Of batches no two
// are equal; held.go sees to that.
var schema = []string{
	`CREATE TABLE meta (version INTEGER)`,

	// One row a batch. first_ts and last_ts bound every timestamp that its rows carry.
	`CREATE TABLE batches (node VARCHAR, boot_id VARCHAR, sequence UBIGINT, agent_version VARCHAR, capture VARCHAR,
		start_ts BIGINT, end_ts BIGINT, period_ns BIGINT, first_ts BIGINT, last_ts BIGINT)`,

	// ts is the start of the batch; type is one of typeNumbers.
	`CREATE TABLE samples (ts BIGINT, node VARCHAR, subject_id UBIGINT, type UTINYINT, stack_id UBIGINT, value BIGINT, capture VARCHAR)`,

	// Leaf first.
	`CREATE TABLE stacks (stack_id UBIGINT, frames UBIGINT[])`,

	// One row a line: inline 0 is the innermost function of an address, and the
	// only row when nothing was inlined. function is NULL when it is not known,
	// mapping is NULL when the address lay in none.
	`CREATE TABLE frames (frame_id UBIGINT, inline UINTEGER, function VARCHAR, file VARCHAR, line BIGINT,
		mapping VARCHAR, build_id VARCHAR, address UBIGINT, realm VARCHAR)`,

	`CREATE TABLE subjects (subject_id UBIGINT, pid BIGINT, comm VARCHAR, thread VARCHAR, container_id VARCHAR, namespace VARCHAR,
		pod VARCHAR, container VARCHAR, workload VARCHAR, workload_kind VARCHAR, rank VARCHAR, device VARCHAR, ioctl VARCHAR)`,

	`CREATE TABLE readings (ts BIGINT, node VARCHAR, series_id UBIGINT, value DOUBLE, capture VARCHAR)`,
	`CREATE TABLE series (series_id UBIGINT, metric VARCHAR, label_names VARCHAR[], label_values VARCHAR[])`,

	`CREATE TABLE losses (ts BIGINT, node VARCHAR, place VARCHAR, count UBIGINT, capture VARCHAR)`,
}

// typeNumbers is how samples.type writes a type. Files outlive releases: a
// number is never given to another type.
var typeNumbers = map[profile.Type]uint8{
	profile.Samples:      1,
	profile.CPU:          2,
	profile.OffCPU:       3,
	profile.Ioctl:        4,
	profile.IoctlTime:    5,
	profile.Launch:       6,
	profile.Starved:      7,
	profile.DeviceBusy:   8,
	profile.DeviceEnergy: 9,
	profile.DeviceOp:     10,
}

// subject is a row of subjects: everything about a sample that is not its node, place or time.
type subject struct {
	PID                                                  int
	Comm, Thread, ContainerID, Namespace, Pod, Container string
	Workload, WorkloadKind, Rank, Device, Ioctl          string
}

// subjectLabels are the labels of samples that subjects holds, each with the SQL
// that reads it as a label's value: "" where there is none.
var subjectLabels = []struct{ name, expr string }{
	{"comm", "comm"},
	{"container", "container"},
	{"container_id", "container_id"},
	{"device", "device"},
	{"ioctl", "ioctl"},
	{"namespace", "namespace"},
	{"pid", "CASE pid WHEN 0 THEN '' ELSE pid::VARCHAR END"},
	{"pod", "pod"},
	{"rank", "rank"},
	{"thread", "thread"},
	{"workload", "workload"},
	{"workload_kind", "workload_kind"},
}

// labelExpr finds the SQL of a subject's label.
func labelExpr(name string) (string, bool) {
	for _, l := range subjectLabels {
		if l.name == name {
			return l.expr, true
		}
	}
	return "", false
}

// clean makes text storable: DuckDB's strings are UTF-8, and what it would make
// of others is NULL.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
