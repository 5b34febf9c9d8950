package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pscommon "github.com/shirou/gopsutil/v4/common"
	"github.com/shirou/gopsutil/v4/disk"
)

// mount is the value of one mount.
type mount struct {
	MountPoint string   `json:"mount_point"`
	Device     string   `json:"device"`
	FileSystem string   `json:"file_system"`
	Options    []string `json:"options,omitempty"`
	*mountUsage
	// UsageError is why there is no usage.
	UsageError string `json:"usage_error,omitempty"`
}

// mountUsage is how full a file system is. Space that only root may use is
// neither used nor available, so that these two make 100 %, as df counts.
type mountUsage struct {
	TotalBytes     uint64  `json:"total_bytes"`
	UsedBytes      uint64  `json:"used_bytes"`
	AvailableBytes uint64  `json:"available_bytes"`
	UsedPercent    percent `json:"used_percent"`
	TotalInodes    uint64  `json:"total_inodes"`
	UsedInodes     uint64  `json:"used_inodes"`
}

// mountReader lists mounts. list and asker.usage are the operating system's,
// except in tests.
type mountReader struct {
	list  func(ctx context.Context) ([]disk.PartitionStat, error)
	asker usageAsker
}

func newMountReader() *mountReader {
	return &mountReader{list: listMounts, asker: usageAsker{usage: disk.Usage}}
}

func (r *mountReader) read(ctx context.Context) ([]item, error) {
	all, err := r.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	shown := topmost(all)
	points := make([]string, len(shown))
	for i, m := range shown {
		points[i] = m.Mountpoint
	}
	usages := r.asker.ask(points)
	items := make([]item, len(shown))
	for i, m := range shown {
		value, err := encode(mountValue(m, usages[m.Mountpoint]))
		if err != nil {
			return nil, err
		}
		items[i] = item{key: m.Mountpoint, value: value}
	}
	return items, nil
}

// listMounts lists the mounts that this process sees, which are those whose
// usage it can request. By default, gopsutil lists those of process 1.
func listMounts(ctx context.Context) ([]disk.PartitionStat, error) {
	return disk.PartitionsWithContext(onThisMachine(ctx), true)
}

// onThisMachine makes gopsutil read this machine's own files, regardless
// of the environment variables HOST_PROC and the like.
func onThisMachine(ctx context.Context) context.Context {
	return context.WithValue(ctx, pscommon.EnvKey, pscommon.EnvMap{
		pscommon.HostProcEnvKey:    "/proc",
		pscommon.HostSysEnvKey:     "/sys",
		pscommon.HostDevEnvKey:     "/dev",
		pscommon.HostProcMountinfo: "/proc/self/mountinfo",
	})
}

// topmost returns the mounts that store something, by mount point. Of several
// on one mount point it takes the last, which is on top; if that one stores
// nothing, then nothing can be stored there.
func topmost(all []disk.PartitionStat) []disk.PartitionStat {
	byPoint := make(map[string]disk.PartitionStat, len(all))
	for _, m := range all {
		byPoint[m.Mountpoint] = m
	}
	shown := make([]disk.PartitionStat, 0, len(byPoint))
	for _, m := range byPoint {
		if !storesNothing[m.Fstype] {
			shown = append(shown, m)
		}
	}
	slices.SortFunc(shown, func(a, b disk.PartitionStat) int { return strings.Compare(a.Mountpoint, b.Mountpoint) })
	return shown
}

func mountValue(m disk.PartitionStat, a usageAnswer) mount {
	v := mount{MountPoint: m.Mountpoint, Device: m.Device, FileSystem: m.Fstype, Options: m.Opts}
	if a.err != nil {
		v.UsageError = a.err.Error()
		return v
	}
	u := a.usage
	v.mountUsage = &mountUsage{
		TotalBytes: u.Total, UsedBytes: u.Used, AvailableBytes: u.Free,
		UsedPercent: percentOf(float64(u.Used), float64(u.Used)+float64(u.Free)),
		TotalInodes: u.InodesTotal, UsedInodes: u.InodesUsed,
	}
	return v
}

// storesNothing are the types of file systems that are a view of the kernel or
// of another program, and have no meaningful usage.
var storesNothing = map[string]bool{
	// Linux
	"autofs": true, "binder": true, "binfmt_misc": true, "bpf": true,
	"cgroup": true, "cgroup2": true, "configfs": true, "cpuset": true,
	"debugfs": true, "devpts": true, "efivarfs": true, "fuse.gvfsd-fuse": true,
	"fuse.lxcfs": true, "fuse.portal": true, "fusectl": true, "hugetlbfs": true,
	"mqueue": true, "nfsd": true, "nsfs": true, "proc": true, "pstore": true,
	"resctrl": true, "rpc_pipefs": true, "securityfs": true, "selinuxfs": true,
	"smackfs": true, "sysfs": true, "tracefs": true,
	// macOS, FreeBSD
	"devfs": true, "fdescfs": true, "linprocfs": true, "linsysfs": true, "procfs": true,
}
