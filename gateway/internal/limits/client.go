package limits

import (
	"crypto/sha256"
	"net/netip"
)

// Client is the unit for which streams are counted: an IPv4 address, or the first 64
// bits of an IPv6 address, since one household or one machine can choose all the
// rest. It has no pointer, so that a very large table of clients costs the garbage
// collector nothing.
type Client [16]byte

// nameless is the common client of all peers without an IP address, such as those of
// a Unix socket. No client has this value: it is a multicast address.
var nameless = Client{0: 0xff, 15: 0xff}

// ClientOf returns the client for which an address is counted.
func ClientOf(a netip.Addr) Client {
	a = a.Unmap()
	if !a.IsValid() {
		return nameless
	}
	c := Client(a.As16())
	if a.Is6() {
		clear(c[8:])
	}
	return c
}

// ClientOfPrincipal returns the client that stands for the principal with this key, over all
// its addresses. It is a multicast address, so that it is not the client of any address.
func ClientOfPrincipal(key string) Client {
	sum := sha256.Sum256([]byte(key))
	c := Client{0: 0xff, 1: 0x01}
	copy(c[2:], sum[:])
	return c
}

// String returns, for instance, 192.0.2.1 or 2001:db8:1:2::/64.
func (c Client) String() string {
	if c == nameless {
		return "without an address"
	}
	a := netip.AddrFrom16(c)
	if a.Is4In6() {
		return a.Unmap().String()
	}
	return netip.PrefixFrom(a, 64).String()
}

// has returns the beginning of a sentence to the client about what it uses.
func (c Client) has() string {
	if c[0] == 0xff && c != nameless {
		return "you have" // a principal, which has no name here
	}
	return "client " + c.String() + " has"
}

// PeerAddress parses a network's description of the peer: an address with a port. The
// result is not valid if there is no address.
func PeerAddress(remote string) netip.AddrPort {
	if p, err := netip.ParseAddrPort(remote); err == nil {
		return netip.AddrPortFrom(bare(p.Addr()), p.Port())
	}
	a, _ := netip.ParseAddr(remote)
	return netip.AddrPortFrom(bare(a), 0)
}

// bare returns the address without its zone, and IPv4 as IPv4.
func bare(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
