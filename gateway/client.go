package gateway

import (
	"net/http"
	"net/netip"
)

// client is whom streams are counted for: an IPv4 address, or the first 64 bits
// of an IPv6 address, of which one household or one machine has all the rest to
// choose from. It has no pointer, so that a table of very many of them costs the
// collector nothing.
type client [16]byte

// nameless are all clients together that have no IP address, such as those of a
// Unix socket. No client has this one: it is a multicast address.
var nameless = client{0: 0xff, 15: 0xff}

// clientOf returns whom an address is counted for.
func clientOf(a netip.Addr) client {
	a = a.Unmap()
	if !a.IsValid() {
		return nameless
	}
	c := client(a.As16())
	if a.Is6() {
		clear(c[8:])
	}
	return c
}

// clientOfRequest returns whom a request is counted for.
func (g *Gateway) clientOfRequest(r *http.Request) client {
	return clientOf(g.proxies.ofRequest(r).Addr())
}

// String returns for instance 192.0.2.1 or 2001:db8:1:2::/64.
func (c client) String() string {
	if c == nameless {
		return "without an address"
	}
	a := netip.AddrFrom16(c)
	if a.Is4In6() {
		return a.Unmap().String()
	}
	return netip.PrefixFrom(a, 64).String()
}

// peerAddress reads what a network says of the other side: an address with a
// port. It is not valid where there is none.
func peerAddress(remote string) netip.AddrPort {
	if p, err := netip.ParseAddrPort(remote); err == nil {
		return netip.AddrPortFrom(bare(p.Addr()), p.Port())
	}
	a, _ := netip.ParseAddr(remote)
	return netip.AddrPortFrom(bare(a), 0)
}

// bare is the address without its zone, and IPv4 as IPv4.
func bare(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
