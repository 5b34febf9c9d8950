package introspection

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// byName is what precedes the address of a name that stands for all of its addresses.
const byName = "dns+"

// MaxReplicas is the maximum number of replicas that are asked.
const MaxReplicas = 32

// ValidAddress reports whether text is the address of an operations listener, such as
// http://10.0.0.7:8081, or of all that a name has: dns+http://watchtide-headless:8081. Both may
// begin with https instead.
func ValidAddress(text string) bool {
	u, err := url.Parse(strings.TrimPrefix(text, byName))
	if err != nil || u.Host == "" || u.Port() == "" || u.User != nil || u.Scheme+"://"+u.Host != strings.TrimPrefix(text, byName) {
		return false
	}
	return u.Scheme == "http" || u.Scheme == "https"
}

// IsSecure reports whether a valid address is asked over TLS.
func IsSecure(address string) bool {
	return strings.HasPrefix(strings.TrimPrefix(address, byName), "https:")
}

// hostOf returns the host name in a valid address.
func hostOf(address string) string {
	u, err := url.Parse(strings.TrimPrefix(address, byName))
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Resolver finds the addresses of a name. net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// expand returns the origins that an address stands for.
func expand(ctx context.Context, r Resolver, address string) ([]string, error) {
	origin, named := strings.CutPrefix(address, byName)
	if !named {
		return []string{origin}, nil
	}
	u, err := url.Parse(origin)
	if err != nil {
		return nil, err
	}
	found, err := r.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return nil, err
	}
	var origins []string
	for _, ip := range found[:min(len(found), MaxReplicas)] {
		origins = append(origins, u.Scheme+"://"+net.JoinHostPort(ip.Unmap().String(), u.Port()))
	}
	slices.Sort(origins)
	return slices.Compact(origins), nil
}
