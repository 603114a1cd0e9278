// SPDX-License-Identifier: Apache-2.0

package host

// A Desc describes one metric. All of them are gauges: counters of the kernel
// have become rates over the interval between two readings.
type Desc struct {
	Name   string
	Help   string
	Labels []string // in the order of their names
}

const (
	cpuRatio        = "host_cpu_ratio"
	load1           = "host_load1"
	load5           = "host_load5"
	load15          = "host_load15"
	memoryTotal     = "host_memory_total_bytes"
	memoryUsed      = "host_memory_used_bytes"
	memoryAvailable = "host_memory_available_bytes"
	memoryCached    = "host_memory_cached_bytes"
	swapTotal       = "host_swap_total_bytes"
	swapUsed        = "host_swap_used_bytes"
	pressureRatio   = "host_pressure_ratio"

	networkReceived           = "host_network_receive_bytes_per_second"
	networkReceivedPackets    = "host_network_receive_packets_per_second"
	networkReceivedErrors     = "host_network_receive_errors_per_second"
	networkReceivedDropped    = "host_network_receive_drops_per_second"
	networkTransmitted        = "host_network_transmit_bytes_per_second"
	networkTransmittedPackets = "host_network_transmit_packets_per_second"
	networkTransmittedErrors  = "host_network_transmit_errors_per_second"
	networkTransmittedDropped = "host_network_transmit_drops_per_second"
	networkCut                = "host_network_devices_cut"

	diskRead    = "host_disk_read_bytes_per_second"
	diskReads   = "host_disk_reads_per_second"
	diskWritten = "host_disk_written_bytes_per_second"
	diskWrites  = "host_disk_writes_per_second"
	diskBusy    = "host_disk_busy_ratio"
	diskCut     = "host_disk_devices_cut"

	contextSwitches = "host_context_switches_per_second"
	interrupts      = "host_interrupts_per_second"
	forks           = "host_forks_per_second"
	running         = "host_processes_running"
	blocked         = "host_processes_blocked"
	filesOpen       = "host_file_descriptors_open"
	filesLimit      = "host_file_descriptors_limit"
	uptime          = "host_uptime_seconds"
	unreadable      = "host_unreadable"
)

// Metrics lists every metric that readings may have.
var Metrics = []Desc{
	{cpuRatio, "Share of all CPUs' time by mode: user (with nice), system, iowait, irq (with softirq), steal, idle. The modes add up to 1.", []string{"mode"}},
	{load1, "Tasks running, runnable or in uninterruptible sleep, averaged over 1 minute.", nil},
	{load5, "Tasks running, runnable or in uninterruptible sleep, averaged over 5 minutes.", nil},
	{load15, "Tasks running, runnable or in uninterruptible sleep, averaged over 15 minutes.", nil},
	{memoryTotal, "Memory that the kernel manages.", nil},
	{memoryUsed, "Memory that could not be had without swapping: total less available.", nil},
	{memoryAvailable, "Memory that could be had without swapping, as the kernel estimates it.", nil},
	{memoryCached, "Page cache and buffers.", nil},
	{swapTotal, "Swap space.", nil},
	{swapUsed, "Swap space in use.", nil},
	{pressureRatio, "Share of time in which some, or all (full), tasks that had work to do were stalled for want of cpu, memory or io. Absent where the kernel keeps no pressure stall information.", []string{"resource", "stalled"}},

	{networkReceived, "Bytes received.", []string{"device"}},
	{networkReceivedPackets, "Packets received.", []string{"device"}},
	{networkReceivedErrors, "Packets received with an error.", []string{"device"}},
	{networkReceivedDropped, "Packets dropped on receipt.", []string{"device"}},
	{networkTransmitted, "Bytes transmitted.", []string{"device"}},
	{networkTransmittedPackets, "Packets transmitted.", []string{"device"}},
	{networkTransmittedErrors, "Packets that could not be transmitted.", []string{"device"}},
	{networkTransmittedDropped, "Packets dropped before transmission.", []string{"device"}},
	{networkCut, "Network devices left out because others were busier. Loopback and devices that never carried a packet do not count.", nil},

	{diskRead, "Bytes read.", []string{"device"}},
	{diskReads, "Reads completed.", []string{"device"}},
	{diskWritten, "Bytes written.", []string{"device"}},
	{diskWrites, "Writes completed.", []string{"device"}},
	{diskBusy, "Share of time in which at least one request was under way.", []string{"device"}},
	{diskCut, "Disks left out because others were busier. Partitions, loop and RAM disks, and disks never used do not count.", nil},

	{contextSwitches, "Context switches.", nil},
	{interrupts, "Interrupts served.", nil},
	{forks, "Processes and threads created.", nil},
	{running, "Tasks running or runnable.", nil},
	{blocked, "Tasks blocked waiting for I/O.", nil},
	{filesOpen, "File handles in use.", nil},
	{filesLimit, "File handles that the kernel allows.", nil},
	{uptime, "Time since the machine started.", nil},
	{unreadable, "1 for each source under /proc that exists and could not be read or understood.", []string{"source"}},
}
