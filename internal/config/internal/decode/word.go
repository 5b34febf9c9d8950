package decode

import (
	"errors"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ParseWhole reads a whole number. It returns the largest one instead of a number that is too
// large.
func ParseWhole(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

var sizeUnits = []struct {
	name  string
	shift uint
}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}

// ParseSize reads a number of bytes, with or without a unit. It returns the largest one instead
// of a number that is too large.
func ParseSize(s string) (int64, bool) {
	var shift uint
	for _, u := range sizeUnits {
		if number, found := strings.CutSuffix(s, u.name); found {
			s, shift = strings.TrimSpace(number), u.shift
			break
		}
	}
	n, ok := ParseWhole(s)
	switch {
	case n < 0:
		return n, ok
	case n > math.MaxInt64>>shift:
		return math.MaxInt64, ok
	}
	return n << shift, ok
}

// ValidNetwork reports whether ParseNetwork can read a text.
func ValidNetwork(s string) bool {
	_, ok := ParseNetwork(s)
	return ok
}

// ParseNetwork reads a network, without bits beyond its prefix length: those
// would suggest that something else was meant.
func ParseNetwork(s string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), a.Zone() == ""
	}
	p, err := netip.ParsePrefix(s)
	return p, err == nil && p == p.Masked() && !p.Addr().Is4In6()
}

// credentialWords are in the names of metadata that carries credentials.
var credentialWords = []string{"authorization", "cookie", "token", "secret", "password", "credential", "api-key", "api_key", "apikey"}

// NamesCredential reports whether metadata with this name is known to carry credentials.
func NamesCredential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(name, word) })
}

// ValidMetadataName reports whether a text can name metadata of gRPC.
func ValidMetadataName(name string) bool {
	ok := name != "" && !strings.HasPrefix(name, "grpc-") && !strings.HasSuffix(name, "-bin")
	for _, r := range name {
		ok = ok && ('a' <= r && r <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.", r))
	}
	return ok
}

// ValidMetadata reports whether a text can be the value of metadata: printable ASCII.
func ValidMetadata(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text != ""
}
