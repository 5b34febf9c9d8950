package limits

import (
	"context"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

func trusting(header string, networks ...string) Proxies {
	p := Proxies{Header: header}
	for _, n := range networks {
		p.Trusted = append(p.Trusted, netip.MustParsePrefix(n))
	}
	return p
}

// TestClientOf checks that only addresses added by a trusted proxy count.
func TestClientOf(t *testing.T) {
	networks := []string{"10.0.0.0/8", "2001:db8:ffff::/48"}
	for _, c := range []struct{ name, header, remote, lines, want string }{
		{"nobody between", "X-Forwarded-For", "192.0.2.1:5", "", "192.0.2.1"},
		{"a client that pretends", "X-Forwarded-For", "192.0.2.1:5", "198.51.100.9", "192.0.2.1"},
		{"one proxy", "X-Forwarded-For", "10.0.0.1:5", "192.0.2.1", "192.0.2.1"},
		{"a client that pretends to a proxy", "X-Forwarded-For", "10.0.0.1:5", "198.51.100.9, 192.0.2.1", "192.0.2.1"},
		{"and in a line of its own", "X-Forwarded-For", "10.0.0.1:5", "198.51.100.9\n192.0.2.1", "192.0.2.1"},
		{"three proxies", "X-Forwarded-For", "10.0.0.1:5", "198.51.100.9,192.0.2.1, 10.9.9.9\n[2001:db8:ffff::1]:80", "192.0.2.1"},
		{"a proxy that asks for itself", "X-Forwarded-For", "10.0.0.1:5", "", "10.0.0.1"},
		{"proxies alone", "X-Forwarded-For", "10.0.0.1:5", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
		{"not an address", "X-Forwarded-For", "10.0.0.1:5", "192.0.2.1, unknown", "10.0.0.1"},
		{"not an address, further away", "X-Forwarded-For", "10.0.0.1:5", "192.0.2.1, \x00, 10.0.0.2", "10.0.0.2"},
		{"nothing at the end", "X-Forwarded-For", "10.0.0.1:5", "192.0.2.1,", "10.0.0.1"},
		{"with a port", "X-Forwarded-For", "10.0.0.1:5", "192.0.2.1:443", "192.0.2.1"},
		{"IPv6 is a network", "X-Forwarded-For", "10.0.0.1:5", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"IPv4 in IPv6", "X-Forwarded-For", "[::ffff:10.0.0.1]:5", "::ffff:192.0.2.1", "192.0.2.1"},
		{"a zone", "X-Forwarded-For", "[fe80::1%eth0]:5", "", "fe80::/64"},
		{"the other header", "X-Forwarded-For", "10.0.0.1:5", "for=192.0.2.1", "10.0.0.1"},
		{"a Unix socket", "X-Forwarded-For", "@", "192.0.2.1", "without an address"},
		{"no address at all", "X-Forwarded-For", "", "192.0.2.1", "without an address"},
		{"loopback is not nameless", "X-Forwarded-For", "[::1]:5", "", "::/64"},

		{"standard", headerForwarded, "10.0.0.1:5", "for=192.0.2.1", "192.0.2.1"},
		{"standard, everything", headerForwarded, "10.0.0.1:5", `for=198.51.100.9, proto=https ;For="[2001:db8:1:2::1]:4711";by=_hidden`, "2001:db8:1:2::/64"},
		{"standard, a comma in quotes", headerForwarded, "10.0.0.1:5", `for=192.0.2.1;host="a,for=198.51.100.9"`, "192.0.2.1"},
		{"standard, a quote never closed", headerForwarded, "10.0.0.1:5", `for="198.51.100.9, for=192.0.2.1`, "192.0.2.1"},
		{"standard, hidden", headerForwarded, "10.0.0.1:5", "for=192.0.2.1, for=_x7", "10.0.0.1"},
		{"standard, no for", headerForwarded, "10.0.0.1:5", "for=192.0.2.1, proto=https", "10.0.0.1"},
		{"standard, two proxies", headerForwarded, "10.0.0.1:5", `for=192.0.2.1;proto=http, for="10.0.0.7:80"`, "192.0.2.1"},
		{"the old one", headerForwarded, "10.0.0.1:5", "192.0.2.1", "10.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := trusting(c.header, networks...)
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.remote
			var md []string
			for line := range strings.SplitSeq(c.lines, "\n") {
				if line != "" {
					r.Header.Add(c.header, line)
					md = append(md, c.header, line)
				}
			}
			if got := ClientOf(p.OfRequest(r).Addr()).String(); got != c.want {
				t.Errorf("HTTP: %s, want %s", got, c.want)
			}
			ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: textAddr(c.remote)})
			if got := ClientOf(p.OfCall(metadata.NewIncomingContext(ctx, metadata.Pairs(md...))).Addr()).String(); got != c.want {
				t.Errorf("gRPC: %s, want %s", got, c.want)
			}
		})
	}
}

type textAddr string

func (a textAddr) Network() string { return "text" }
func (a textAddr) String() string  { return string(a) }

var _ net.Addr = textAddr("")

func TestCallWithoutAPeer(t *testing.T) {
	if got := (Proxies{Header: headerForwarded}).OfCall(context.Background()); ClientOf(got.Addr()) != nameless {
		t.Errorf("it is %s", got)
	}
}

// FuzzForwarded checks that whatever a client sends, only the address that its proxy
// appends counts.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "198.51.100.9", `for="`, `for="[::1]:5"`, `"`, `\"`, ",,,", `for=1.2.3.4;for="a,b"`, "10.0.0.2, 10.0.0.3", "\x00\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, written string) {
		from, want := netip.MustParseAddrPort("10.0.0.1:5"), netip.MustParseAddrPort("192.0.2.1:0")
		for header, added := range map[string][]string{
			"X-Forwarded-For": {"192.0.2.1", "192.0.2.1:80", "192.0.2.1, 10.0.0.2"},
			headerForwarded:   {"for=192.0.2.1", `for="192.0.2.1:80";proto=http`, "for=192.0.2.1, for=10.0.0.2"},
		} {
			p := trusting(header, "10.0.0.0/8")
			for _, own := range added {
				if got := p.origin(from, []string{written + ", " + own}); got != want {
					t.Errorf("%s: %q + %q: %s", header, written, own, got)
				}
				if got := p.origin(from, []string{written, own}); got != want {
					t.Errorf("%s: %q and %q: %s", header, written, own, got)
				}
			}
			if got := p.origin(want, []string{written}); got != want {
				t.Errorf("%s: %q of a peer that is no proxy: %s", header, written, got)
			}
			p.origin(from, []string{written}) // must terminate
		}
	})
}
