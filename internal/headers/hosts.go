package headers

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// anyHost in Config.Hosts turns the check off.
const anyHost = "*"

// Hosts has the names under which the gateway may be addressed. A web page of a
// foreign name can make that name point at an address of the gateway (DNS rebinding),
// and its browser then treats the two as one origin. The name in the Host header
// reveals it. An IP address needs no check, since it cannot be rebound, nor does
// localhost, which browsers do not look up.
//
// Static after construction.
type Hosts struct {
	any      bool
	names    map[string]bool // canonical
	suffixes []string        // ".example.com" of "*.example.com"
}

// localNames are always served.
var localNames = []string{"localhost", "ip6-localhost", "ip6-loopback"}

// NewHosts returns the list of the given names, each a host or "*." and a domain, and of this
// machine's own.
func NewHosts(names []string) Hosts {
	h := Hosts{names: map[string]bool{}, suffixes: []string{".localhost"}}
	for _, name := range localNames {
		h.names[name] = true
	}
	for _, name := range names {
		name = canonicalName(name)
		switch suffix, wild := strings.CutPrefix(name, "*"); {
		case name == anyHost:
			h.any = true
		case wild:
			h.suffixes = append(h.suffixes, suffix)
		default:
			h.names[name] = true
		}
	}
	return h
}

// CheckHost returns an error unless name is valid in Config.Hosts: a host name, "*."
// and a host name for every name below it, or "*" for any name.
func CheckHost(name string) error {
	rest := strings.TrimPrefix(canonicalName(name), "*.")
	if name == anyHost || validHostName(rest) {
		return nil
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return fmt.Errorf("host %q is an IP address, which is always served: want a name", name)
	}
	return fmt.Errorf(`host %q: want a name without scheme, port and path, such as app.example.com, "*.example.com" or "*" for every name`, name)
}

// canonicalName returns a host name in the one spelling that is compared.
func canonicalName(name string) string {
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

// validHostName reports whether a canonical name can be looked up. An underscore is
// not allowed in a host name, but some use it anyway.
func validHostName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInLabel) {
			return false
		}
	}
	return true
}

func notInLabel(r rune) bool {
	return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
}

// Allow reports whether a request for authority (a host, and a port if it is not the
// usual one) is meant for this gateway. No browser omits it: an empty authority comes
// from an old client or a probe.
func (h Hosts) Allow(authority string) bool {
	if h.any || authority == "" {
		return true
	}
	host, ok := hostOf(authority)
	if !ok {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if h.names[host] {
		return true
	}
	for _, suffix := range h.suffixes {
		if below, found := strings.CutSuffix(host, suffix); found && validHostName(below) {
			return true
		}
	}
	return false
}

// hostOf returns the host of an authority: an IP address without brackets, or a
// canonical name. It returns false if it is neither.
func hostOf(authority string) (string, bool) {
	host := authority
	if inner, bracketed := strings.CutPrefix(authority, "["); bracketed {
		address, port, closed := strings.Cut(inner, "]")
		a, err := netip.ParseAddr(strings.Replace(address, "%25", "%", 1))
		if !closed || err != nil || !a.Is6() || port != "" && !validPort(port) {
			return "", false
		}
		return a.String(), true
	}
	if at := strings.IndexByte(authority, ':'); at >= 0 {
		if !validPort(authority[at:]) {
			return "", false
		}
		host = authority[:at]
	}
	if a, err := netip.ParseAddr(host); err == nil && a.Is4() {
		return host, true
	}
	host = canonicalName(host)
	return host, validHostName(host)
}

// validPort reports whether text is a colon and a port; the port may be missing (RFC
// 3986, section 3.2.3).
func validPort(text string) bool {
	port, colon := strings.CutPrefix(text, ":")
	if !colon {
		return false
	}
	_, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil
}

// IsLoopback reports whether an address to listen on, host:port, can be reached only
// from this machine: its host is a loopback address, or a name of one that needs no
// lookup.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	host = canonicalName(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "ip6-localhost" || host == "ip6-loopback"
}
