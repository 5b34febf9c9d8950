package limits

import (
	"context"
	"net/http"
	"net/netip"
	"slices"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// headerForwarded is the standard header of proxies (RFC 7239).
const headerForwarded = "Forwarded"

// Proxies determines where a request comes from when there are proxies in between.
//
// Static after construction.
type Proxies struct {
	Trusted []netip.Prefix
	Header  string // the one that is read
}

// origin returns the address that a request comes from, with the port if it is known.
// It trusts only the addresses that a trusted proxy appends to the header: going from
// the right, it skips the addresses of trusted proxies, and the first other address
// counts. Anything to the left of that could have been written by anyone. A trusted
// proxy that names no address is itself counted.
func (p Proxies) origin(from netip.AddrPort, header []string) netip.AddrPort {
	if !p.Trusts(from.Addr()) {
		return from
	}
	at := from
	for element := range fromRight(header) {
		next := p.address(element)
		if !next.IsValid() {
			break
		}
		at = netip.AddrPortFrom(next, 0)
		if !p.Trusts(next) {
			break
		}
	}
	return at
}

// Trusts reports whether an address is that of a trusted proxy.
func (p Proxies) Trusts(a netip.Addr) bool {
	return slices.ContainsFunc(p.Trusted, func(net netip.Prefix) bool { return net.Contains(a) })
}

func (p Proxies) address(element string) netip.Addr {
	if p.Header == headerForwarded {
		return forwardedFor(element)
	}
	return nodeAddress(element)
}

// OfRequest is origin for HTTP.
func (p Proxies) OfRequest(r *http.Request) netip.AddrPort {
	return p.origin(PeerAddress(r.RemoteAddr), r.Header.Values(p.Header))
}

// ClientOfRequest returns the client for which a request is counted.
func (p Proxies) ClientOfRequest(r *http.Request) Client { return ClientOf(p.OfRequest(r).Addr()) }

// ClientOfCall is ClientOfRequest for gRPC.
func (p Proxies) ClientOfCall(ctx context.Context) Client { return ClientOf(p.OfCall(ctx).Addr()) }

// OfCall is origin for gRPC, whose metadata are the headers of its request.
func (p Proxies) OfCall(ctx context.Context) netip.AddrPort {
	var from netip.AddrPort
	if other, known := peer.FromContext(ctx); known && other.Addr != nil {
		from = PeerAddress(other.Addr.String())
	}
	return p.origin(from, metadata.ValueFromIncomingContext(ctx, p.Header))
}
