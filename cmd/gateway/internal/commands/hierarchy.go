package commands

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// hierarchy is a mounted tree of cgroups, and the position of the process in it.
type hierarchy struct {
	mount string // where the tree is mounted
	dir   string // of the process, below mount
	file  string // holds the limit
}

// hierarchies reads /proc/self/cgroup and /proc/self/mountinfo: cgroup v2, v1, or
// both, in which case one has the memory controller.
func hierarchies(cgroups, mounts string) []hierarchy {
	var all []hierarchy
	for line := range strings.Lines(cgroups) {
		// hierarchy-ID:controllers:path
		parts := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		h, fits := hierarchy{file: "memory.max"}, isV2
		switch {
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			h.file, fits = "memory.limit_in_bytes", isV1Memory
		case parts[0] != "0" || parts[1] != "":
			continue
		}
		for m := range strings.Lines(mounts) {
			if p, ok := parseMount(m); ok && fits(p) {
				h.mount, h.dir = p.at, below(p.root, parts[2])
				all = append(all, h)
				break
			}
		}
	}
	return all
}

// mount is a line of mountinfo (man 5 proc_pid_mountinfo).
type mount struct{ root, at, kind, options string }

func isV2(m mount) bool { return m.kind == "cgroup2" }

func isV1Memory(m mount) bool {
	return m.kind == "cgroup" && slices.Contains(strings.Split(m.options, ","), "memory")
}

func parseMount(line string) (mount, bool) {
	before, after, found := strings.Cut(line, " - ")
	head, tail := strings.Fields(before), strings.Fields(after)
	if !found || len(head) < 5 || len(tail) < 3 {
		return mount{}, false
	}
	return mount{root: unescape(head[3]), at: unescape(head[4]), kind: tail[0], options: tail[2]}, true
}

// unescape replaces \040 and the like.
func unescape(s string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		if n, err := strconv.ParseUint(after[:min(3, len(after))], 8, 8); err == nil && len(after) >= 3 {
			out.WriteByte(byte(n))
			s = after[3:]
			continue
		}
		out.WriteByte('\\')
		s = after
	}
}

// below returns where a cgroup is in a mount that has root as its top. One
// that lies outside is invisible; then the top counts.
func below(root, cgroup string) string {
	root, cgroup = path.Clean(root), path.Clean("/"+cgroup)
	if root == "/" {
		return cgroup
	}
	if rest, inside := strings.CutPrefix(cgroup, root); inside && (rest == "" || rest[0] == '/') {
		return path.Clean("/" + rest)
	}
	return "/"
}
