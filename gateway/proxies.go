package gateway

import (
	"context"
	"net/http"
	"net/netip"
	"slices"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// The headers in which proxies say for whom they ask.
const (
	// HeaderXForwardedFor is what nearly all proxies send: addresses with commas
	// between, each proxy adding the one that it was asked from.
	HeaderXForwardedFor = "X-Forwarded-For"
	// HeaderForwarded is the standard one (RFC 7239).
	HeaderForwarded = "Forwarded"
)

// proxies knows where a request comes from, if proxies stand between.
//
// Static after construction.
type proxies struct {
	trusted []netip.Prefix
	header  string // the one that is read
}

// origin returns the address that a request of somebody comes from, with the port
// where it is known. Only what a trusted proxy adds to the header is believed: from
// the right, addresses of trusted proxies are passed over, and the first other one
// counts. What stands left of it was written by whoever likes to. Where a trusted
// proxy names no address, it counts itself.
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
