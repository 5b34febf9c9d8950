package commands

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	v2Mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	v1Mount = "35 30 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
		"36 30 0:32 / /sys/fs/cgroup/memory rw,relatime shared:12 - cgroup cgroup rw,memory\n"
)

func TestMemoryLimit(t *testing.T) {
	for _, c := range []struct {
		name, cgroup, mounts string
		files                map[string]string
		want                 int64
		file                 string
	}{
		{"no cgroups", "", "", nil, 0, ""},
		{"a container's own namespace", "0::/\n", v2Mount,
			map[string]string{"sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30, "/sys/fs/cgroup/memory.max"},
		{"no limit", "0::/a\n", v2Mount, map[string]string{"sys/fs/cgroup/a/memory.max": "max\n"}, 0, ""},
		{"the smallest is above", "0::/kube/pod/box\n", v2Mount, map[string]string{
			"sys/fs/cgroup/kube/memory.max": "9000", "sys/fs/cgroup/kube/pod/memory.max": "1000", "sys/fs/cgroup/kube/pod/box/memory.max": "max",
		}, 1000, "/sys/fs/cgroup/kube/pod/memory.max"},
		{"the smallest is its own", "0::/kube/pod\n", v2Mount, map[string]string{
			"sys/fs/cgroup/kube/memory.max": "9000", "sys/fs/cgroup/kube/pod/memory.max": "1000",
		}, 1000, "/sys/fs/cgroup/kube/pod/memory.max"},
		{"mounted from a container's cgroup", "0::/docker/abc\n", strings.Replace(v2Mount, "0:26 /", "0:26 /docker/abc", 1),
			map[string]string{"sys/fs/cgroup/memory.max": "500"}, 500, "/sys/fs/cgroup/memory.max"},
		{"outside of what is mounted", "0::/../other\n", strings.Replace(v2Mount, "0:26 /", "0:26 /docker/abc", 1),
			map[string]string{"sys/fs/cgroup/memory.max": "500"}, 500, "/sys/fs/cgroup/memory.max"},
		{"version 1", "12:memory:/docker/abc\n3:cpu,cpuacct:/x\n1:name=systemd:/y\n", v1Mount, map[string]string{
			"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "2000", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
		}, 2000, "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes"},
		{"version 1 without a limit", "12:memory:/\n", v1Mount,
			map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, 0, ""},
		{"both versions", "5:memory:/a\n0::/b\n", strings.Replace(v2Mount, "/sys/fs/cgroup", "/sys/fs/cgroup/unified", 1) + v1Mount,
			map[string]string{"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "700"}, 700, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes"},
		{"a name with a space", "0::/a b\n", v2Mount, map[string]string{"sys/fs/cgroup/a b/memory.max": "5"}, 5, "/sys/fs/cgroup/a b/memory.max"},
		{"mounted at a name with a space", "0::/\n", strings.Replace(v2Mount, "/sys/fs/cgroup", `/my\040groups`, 1),
			map[string]string{"my groups/memory.max": "6"}, 6, "/my groups/memory.max"},
		{"not mounted", "0::/\n", "", nil, 0, ""},
		{"malformed lines", "x\n::\n0::/a\n", "a - b\n - \n" + v2Mount, map[string]string{"sys/fs/cgroup/a/memory.max": "7"}, 7, "/sys/fs/cgroup/a/memory.max"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, found, err := cgroupLimit(cgroupTree(c.cgroup, c.mounts, c.files))
			if err != nil || found != (c.want > 0) || got != (memoryCeiling{c.want, c.file}) {
				t.Errorf("got %+v, %t, %v, want %d of %s", got, found, err, c.want, c.file)
			}
		})
	}
}

func cgroupTree(cgroup, mounts string, files map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if cgroup != "" {
		root["proc/self/cgroup"] = &fstest.MapFile{Data: []byte(cgroup)}
		root["proc/self/mountinfo"] = &fstest.MapFile{Data: []byte(mounts)}
	}
	return root
}

func TestInvalidLimit(t *testing.T) {
	_, _, err := cgroupLimit(cgroupTree("0::/\n", v2Mount, map[string]string{"sys/fs/cgroup/memory.max": "lots"}))
	if err == nil || err.Error() != `/sys/fs/cgroup/memory.max: "lots": want a number of bytes, or max` {
		t.Errorf("error %v", err)
	}
}

func TestThisMachine(t *testing.T) {
	if got, found, err := cgroupLimit(os.DirFS("/")); err != nil || found && got.Bytes < 1<<20 {
		t.Errorf("%+v, %t, %v", got, found, err)
	}
}

// FuzzHierarchies: whatever the files contain, reading ends, and stays below a
// mount.
func FuzzHierarchies(f *testing.F) {
	f.Add("0::/a/../../b\n", v2Mount)
	f.Add("12:memory:/docker/abc\n", v1Mount)
	f.Add("0::/\n", `1 2 3 \04 \ - cgroup2 x y`)
	f.Fuzz(func(t *testing.T, cgroups, mounts string) {
		for _, h := range hierarchies(cgroups, mounts) {
			if !strings.HasPrefix(h.dir, "/") || strings.Contains(h.dir+"/", "/../") {
				t.Errorf("%+v", h)
			}
		}
		_, _, _ = cgroupLimit(cgroupTree(cgroups, mounts, nil))
	})
}
