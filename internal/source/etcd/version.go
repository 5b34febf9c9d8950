package etcd

import (
	"strconv"
	"strings"
)

// version is a server's version, as numbers.
type version struct{ major, minor, patch int }

// parseVersion parses for instance "3.4.23" or "3.6.0-rc.1".
func parseVersion(text string) (v version, ok bool) {
	text, _, _ = strings.Cut(text, "-")
	text, _, _ = strings.Cut(text, "+")
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return version{}, false
	}
	for i, into := range []*int{&v.major, &v.minor, &v.patch} {
		n, err := strconv.ParseUint(parts[i], 10, 16)
		if err != nil {
			return version{}, false
		}
		*into = int(n)
	}
	return v, true
}

// supported reports whether the server supports requests for progress.
func (v version) supported() bool {
	return v.major > 3 || v.major == 3 && v.minor >= 4
}

// ordered reports whether the answer to a request for progress comes after all
// events that precede it.
func (v version) ordered() bool {
	switch {
	case v.major != 3:
		return v.major > 3
	case v.minor == 4:
		return v.patch >= 31
	case v.minor == 5:
		return v.patch >= 13
	}
	return v.minor > 5
}

// keepsDeletes reports whether a watch from the past gets every delete that was not compacted when
// it began, also if there is a compaction meanwhile. Servers before 3.4.36 and 3.5.18, and those
// before the first release of 3.6, may leave some out.
func keepsDeletes(text string) bool {
	v, ok := parseVersion(text)
	if !ok || strings.Contains(text, "-") {
		return false
	}
	switch {
	case v.major != 3:
		return v.major > 3
	case v.minor == 4:
		return v.patch >= 36
	case v.minor == 5:
		return v.patch >= 18
	}
	return v.minor > 5
}
