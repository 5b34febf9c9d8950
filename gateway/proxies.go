package gateway

import (
	"context"
	"net/http"
	"net/netip"
	"slices"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// The headers in which proxies name the client that they forward for.
const (
	// HeaderXForwardedFor is sent by nearly all proxies: addresses separated by
	// commas, to which each proxy appends the one that its request came from.
	HeaderXForwardedFor = "X-Forwarded-For"
	// HeaderForwarded is the standard one (RFC 7239).
	HeaderForwarded = "Forwarded"
)

// proxies determines where a request comes from when there are proxies in between.
//
// Static after construction.
type proxies struct {
	trusted []netip.Prefix
	header  string // the one that is read
}

// origin returns the address that a request comes from, with the port if it is known.
// It believes only what a trusted proxy appends to the header: going from the right,
// it skips the addresses of trusted proxies, and the first other address counts.
// Anything to the left of that could have been written by anyone. A trusted proxy
// that names no address counts itself.
func (p proxies) origin(from netip.AddrPort, header []string) netip.AddrPort {
	if !p.trusts(from.Addr()) {
		return from
	}
	at := from
	for element := range fromRight(header) {
		next := p.address(element)
		if !next.IsValid() {
			break
		}
		at = netip.AddrPortFrom(next, 0)
		if !p.trusts(next) {
			break
		}
	}
	return at
}

func (p proxies) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p.trusted, func(net netip.Prefix) bool { return net.Contains(a) })
}

func (p proxies) address(element string) netip.Addr {
	if p.header == HeaderForwarded {
		return forwardedFor(element)
	}
	return nodeAddress(element)
}

// ofRequest is origin for HTTP.
func (p proxies) ofRequest(r *http.Request) netip.AddrPort {
	return p.origin(peerAddress(r.RemoteAddr), r.Header.Values(p.header))
}

// ofCall is origin for gRPC, whose metadata are the headers of its request.
func (p proxies) ofCall(ctx context.Context) netip.AddrPort {
	var from netip.AddrPort
	if other, known := peer.FromContext(ctx); known && other.Addr != nil {
		from = peerAddress(other.Addr.String())
	}
	return p.origin(from, metadata.ValueFromIncomingContext(ctx, p.header))
}
