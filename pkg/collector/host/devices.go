// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"

	"diagon.dev/diagon/pkg/profile"
)

// sectorBytes is the unit of /proc/diskstats, whatever the disk's own sectors are.
const sectorBytes = 512

// network writes the rates of the busiest devices. A node with a veth for each
// of its pods has hundreds.
func (w *writer) network(before, now procfs.NetDev, most int) {
	var used []procfs.NetDevLine
	for _, d := range now {
		if d.Name != "lo" && d.RxPackets+d.TxPackets > 0 {
			used = append(used, d)
		}
	}
	kept, cut := busiest(used, most, func(d procfs.NetDevLine) (uint64, string) { return d.RxBytes + d.TxBytes, d.Name })
	for _, n := range kept {
		b, ok := before[n.Name]
		if !ok {
			continue
		}
		device := profile.Label{Name: "device", Value: n.Name}
		w.rate(networkReceived, b.RxBytes, n.RxBytes, 1, device)
		w.rate(networkReceivedPackets, b.RxPackets, n.RxPackets, 1, device)
		w.rate(networkReceivedErrors, b.RxErrors, n.RxErrors, 1, device)
		w.rate(networkReceivedDropped, b.RxDropped, n.RxDropped, 1, device)
		w.rate(networkTransmitted, b.TxBytes, n.TxBytes, 1, device)
		w.rate(networkTransmittedPackets, b.TxPackets, n.TxPackets, 1, device)
		w.rate(networkTransmittedErrors, b.TxErrors, n.TxErrors, 1, device)
		w.rate(networkTransmittedDropped, b.TxDropped, n.TxDropped, 1, device)
	}
	if now != nil {
		w.gauge(networkCut, float64(cut))
	}
}

// disks writes the rates of the busiest disks.
func (w *writer) disks(before, now []blockdevice.Diskstats, most int) {
	was := make(map[string]blockdevice.Diskstats, len(before))
	for _, d := range before {
		was[d.DeviceName] = d
	}
	kept, cut := busiest(wholeDisks(now), most, func(d blockdevice.Diskstats) (uint64, string) {
		return d.ReadSectors + d.WriteSectors, d.DeviceName
	})
	for _, n := range kept {
		b, ok := was[n.DeviceName]
		if !ok {
			continue
		}
		device := profile.Label{Name: "device", Value: n.DeviceName}
		w.rate(diskRead, b.ReadSectors, n.ReadSectors, sectorBytes, device)
		w.rate(diskReads, b.ReadIOs, n.ReadIOs, 1, device)
		w.rate(diskWritten, b.WriteSectors, n.WriteSectors, sectorBytes, device)
		w.rate(diskWrites, b.WriteIOs, n.WriteIOs, 1, device)
		w.ratio(diskBusy, b.IOsTotalTicks, n.IOsTotalTicks, 1e-3, device) // ticks are milliseconds
	}
	if now != nil {
		w.gauge(diskCut, float64(cut))
	}
}

// busiest keeps the devices that moved most since they came, so that the choice
// is a steady one, and says how many it left out. The kept are in order of name.
func busiest[D any](devices []D, most int, of func(D) (moved uint64, name string)) (kept []D, cut int) {
	slices.SortFunc(devices, func(a, b D) int {
		am, an := of(a)
		bm, bn := of(b)
		return cmp.Or(cmp.Compare(bm, am), cmp.Compare(an, bn))
	})
	kept = devices[:min(most, len(devices))]
	slices.SortFunc(kept, func(a, b D) int {
		_, an := of(a)
		_, bn := of(b)
		return cmp.Compare(an, bn)
	})
	return kept, len(devices) - len(kept)
}

// wholeDisks leaves out partitions, loop and RAM disks, and disks never used.
func wholeDisks(all []blockdevice.Diskstats) []blockdevice.Diskstats {
	names := make(map[string]bool, len(all))
	for _, d := range all {
		names[d.DeviceName] = true
	}
	var whole []blockdevice.Diskstats
	for _, d := range all {
		virtual := strings.HasPrefix(d.DeviceName, "loop") || strings.HasPrefix(d.DeviceName, "ram")
		if virtual || d.ReadIOs+d.WriteIOs == 0 || isPartition(d.DeviceName, names) {
			continue
		}
		whole = append(whole, d)
	}
	return whole
}

// isPartition reports whether name is a disk's name and a number, with a p
// between them when the disk's name itself ends in a digit: sda1, nvme0n1p1.
// Only a disk that is listed counts: some clouds call a whole disk xvda1.
func isPartition(name string, disks map[string]bool) bool {
	disk := strings.TrimRight(name, "0123456789")
	if disk == name {
		return false
	}
	if disks[disk] {
		return true
	}
	disk, ok := strings.CutSuffix(disk, "p")
	return ok && disk != "" && isDigit(disk[len(disk)-1]) && disks[disk]
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
