package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// anyHost in Config.Hosts turns the check off.
const anyHost = "*"

// hosts are the names under which the gateway may be addressed. A web page of a
// foreign name can make that name point at an address of the gateway (DNS rebinding),
// and its browser then treats the two as one origin. The name in the Host header
// reveals it. An IP address needs no check, since nobody can rebind it, nor does
// localhost, which browsers do not look up.
//
// Static after construction.
type hosts struct {
	any      bool
	names    map[string]bool // canonical
	suffixes []string        // ".example.com" of "*.example.com"
}

// localNames are always served. Only tests add to them.
var localNames = []string{"localhost", "ip6-localhost", "ip6-loopback"}

func newHosts(names []string) hosts {
	h := hosts{names: map[string]bool{}, suffixes: []string{".localhost"}}
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

// allow reports whether a request for authority (a host, and a port if it is not the
// usual one) is meant for this gateway. No browser omits it: an empty authority comes
// from an old client or a probe.
func (h hosts) allow(authority string) bool {
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

// misdirected returns the answer to a request for a name that is not one of ours.
func misdirected(authority string) *problem.Problem {
	if len(authority) > 253 {
		authority = authority[:253]
	}
	return problem.New(http.StatusMisdirectedRequest,
		"this gateway is not served under the host %q: ask for it by its IP address or as localhost, or add the name to http.hosts in its configuration", authority)
}

// checkHost refuses requests for a foreign host. Probes pass: they reveal little, and
// name whatever host their load balancer is configured with.
func (g *Gateway) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.hosts.allow(r.Host) && r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			problem.Write(w, misdirected(r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkAuthority is checkHost for gRPC, whose clients name the host of their
// target in :authority.
func (g *Gateway) checkAuthority(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, authority := range md.Get(":authority") {
		if !g.hosts.allow(authority) {
			return misdirected(authority).GRPCStatus().Err()
		}
	}
	return nil
}

func (g *Gateway) checkUnaryAuthority(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := g.checkAuthority(ctx); err != nil {
		return nil, err
	}
	return handler(ctx, r)
}

func (g *Gateway) checkStreamAuthority(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := g.checkAuthority(s.Context()); err != nil {
		return err
	}
	return handler(srv, s)
}
