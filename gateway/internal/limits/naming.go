package limits

import (
	"net/http"
	"slices"
)

// Naming is whether the client of a request is known.
type Naming string

// The values of Naming.
const (
	NamingDirect  Naming = "direct"  // no header says that there is a proxy: the peer is the client, as far as can be known
	NamingTrusted Naming = "trusted" // a trusted proxy has named it
	NamingIgnored Naming = "ignored" // there is a proxy, but it is not trusted: it is counted as the client
	NamingMissing Naming = "missing" // a trusted proxy has named no address: it is counted as the client
)

// proxyHeaders are those that tell of a proxy.
var proxyHeaders = []string{"X-Forwarded-For", headerForwarded, "X-Real-Ip", "X-Forwarded-Proto", "Via"}

// NamingOf returns whether the client of a request is known. A client can write every header
// itself, so the result is for nobody but the client.
func (p Proxies) NamingOf(r *http.Request) Naming {
	peer := PeerAddress(r.RemoteAddr)
	switch {
	case !p.Trusts(peer.Addr()) && slices.ContainsFunc(proxyHeaders, func(name string) bool { return r.Header.Get(name) != "" }):
		return NamingIgnored
	case !p.Trusts(peer.Addr()):
		return NamingDirect
	case p.OfRequest(r) == peer: // a named client has no port
		return NamingMissing
	}
	return NamingTrusted
}
