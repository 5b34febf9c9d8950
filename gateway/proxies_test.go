package gateway

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

func trusting(header string, networks ...string) proxies {
	p := proxies{header: header}
	for _, n := range networks {
		p.trusted = append(p.trusted, netip.MustParsePrefix(n))
	}
	return p
}

// TestWhoIsCounted checks that what a trusted proxy adds counts, and nothing else.
func TestWhoIsCounted(t *testing.T) {
	networks := []string{"10.0.0.0/8", "2001:db8:ffff::/48"}
	for _, c := range []struct{ name, header, remote, lines, want string }{
		{"nobody between", HeaderXForwardedFor, "192.0.2.1:5", "", "192.0.2.1"},
		{"a client that pretends", HeaderXForwardedFor, "192.0.2.1:5", "198.51.100.9", "192.0.2.1"},
		{"one proxy", HeaderXForwardedFor, "10.0.0.1:5", "192.0.2.1", "192.0.2.1"},
		{"a client that pretends to a proxy", HeaderXForwardedFor, "10.0.0.1:5", "198.51.100.9, 192.0.2.1", "192.0.2.1"},
		{"and in a line of its own", HeaderXForwardedFor, "10.0.0.1:5", "198.51.100.9\n192.0.2.1", "192.0.2.1"},
		{"three proxies", HeaderXForwardedFor, "10.0.0.1:5", "198.51.100.9,192.0.2.1, 10.9.9.9\n[2001:db8:ffff::1]:80", "192.0.2.1"},
		{"a proxy that asks for itself", HeaderXForwardedFor, "10.0.0.1:5", "", "10.0.0.1"},
		{"proxies alone", HeaderXForwardedFor, "10.0.0.1:5", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
		{"what is no address", HeaderXForwardedFor, "10.0.0.1:5", "192.0.2.1, unknown", "10.0.0.1"},
		{"what is no address, further away", HeaderXForwardedFor, "10.0.0.1:5", "192.0.2.1, \x00, 10.0.0.2", "10.0.0.2"},
		{"nothing at the end", HeaderXForwardedFor, "10.0.0.1:5", "192.0.2.1,", "10.0.0.1"},
		{"with a port", HeaderXForwardedFor, "10.0.0.1:5", "192.0.2.1:443", "192.0.2.1"},
		{"IPv6 is a network", HeaderXForwardedFor, "10.0.0.1:5", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"IPv4 in IPv6", HeaderXForwardedFor, "[::ffff:10.0.0.1]:5", "::ffff:192.0.2.1", "192.0.2.1"},
		{"a zone", HeaderXForwardedFor, "[fe80::1%eth0]:5", "", "fe80::/64"},
		{"the other header", HeaderXForwardedFor, "10.0.0.1:5", "for=192.0.2.1", "10.0.0.1"},
		{"a Unix socket", HeaderXForwardedFor, "@", "192.0.2.1", "without an address"},
		{"no address at all", HeaderXForwardedFor, "", "192.0.2.1", "without an address"},
		{"loopback is not nameless", HeaderXForwardedFor, "[::1]:5", "", "::/64"},

		{"standard", HeaderForwarded, "10.0.0.1:5", "for=192.0.2.1", "192.0.2.1"},
		{"standard, everything", HeaderForwarded, "10.0.0.1:5", `for=198.51.100.9, proto=https ;For="[2001:db8:1:2::1]:4711";by=_hidden`, "2001:db8:1:2::/64"},
		{"standard, a comma in quotes", HeaderForwarded, "10.0.0.1:5", `for=192.0.2.1;host="a,for=198.51.100.9"`, "192.0.2.1"},
		{"standard, a quote never closed", HeaderForwarded, "10.0.0.1:5", `for="198.51.100.9, for=192.0.2.1`, "192.0.2.1"},
		{"standard, hidden", HeaderForwarded, "10.0.0.1:5", "for=192.0.2.1, for=_x7", "10.0.0.1"},
		{"standard, no for", HeaderForwarded, "10.0.0.1:5", "for=192.0.2.1, proto=https", "10.0.0.1"},
		{"standard, two proxies", HeaderForwarded, "10.0.0.1:5", `for=192.0.2.1;proto=http, for="10.0.0.7:80"`, "192.0.2.1"},
		{"the old one", HeaderForwarded, "10.0.0.1:5", "192.0.2.1", "10.0.0.1"},
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
			if got := clientOf(p.ofRequest(r).Addr()).String(); got != c.want {
				t.Errorf("HTTP: %s, want %s", got, c.want)
			}
			ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: textAddr(c.remote)})
			if got := clientOf(p.ofCall(metadata.NewIncomingContext(ctx, metadata.Pairs(md...))).Addr()).String(); got != c.want {
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
	if got := (proxies{header: HeaderForwarded}).ofCall(context.Background()); clientOf(got.Addr()) != nameless {
		t.Errorf("it is %s", got)
	}
}

// FuzzForwarded checks that whatever a client writes, only what its proxy adds after
// it counts.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "198.51.100.9", `for="`, `for="[::1]:5"`, `"`, `\"`, ",,,", `for=1.2.3.4;for="a,b"`, "10.0.0.2, 10.0.0.3", "\x00\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, written string) {
		from, want := netip.MustParseAddrPort("10.0.0.1:5"), netip.MustParseAddrPort("192.0.2.1:0")
		for header, added := range map[string][]string{
			HeaderXForwardedFor: {"192.0.2.1", "192.0.2.1:80", "192.0.2.1, 10.0.0.2"},
			HeaderForwarded:     {"for=192.0.2.1", `for="192.0.2.1:80";proto=http`, "for=192.0.2.1, for=10.0.0.2"},
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
				t.Errorf("%s: %q of somebody who is no proxy: %s", header, written, got)
			}
			p.origin(from, []string{written}) // must terminate
		}
	})
}
