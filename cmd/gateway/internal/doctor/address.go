package doctor

import (
	"context"
	"net"
	"net/netip"
)

// address is the answer to GET /v1/client.
type address struct {
	Address string `json:"address"`
	Naming  string `json:"naming"`
}

// checkAddress examines for which address the gateway counts this client.
func (e *Examination) checkAddress(ctx context.Context) {
	var seen address
	a, err := e.read(ctx, request{path: "/v1/client"}, &seen)
	if err != nil {
		e.unknown(ctx, Address, "the gateway does not say for which address it counts this client: %s", because(err))
		return
	}
	e.clock.take(a)
	as := shortened(seen.Address)
	const alike = "limits for one client count them all together"
	switch {
	case seen.Naming == "ignored":
		e.problem(ctx, Address, "add the network of the proxy to http.trusted_proxies", "all clients of the proxy at %s are one for the gateway, which does not trust it: %s", as, alike)
	case seen.Naming == "missing":
		e.problem(ctx, Address, "let the proxy set the header of http.forwarded_header (X-Forwarded-For)", "the proxy at %s does not say who its client is: %s", as, alike)
	case seen.Naming == "trusted" && isBehind(seen.Address, a):
		e.problem(ctx, Address, "add the networks of all proxies to http.trusted_proxies", "a proxy has named %s, which is the address of another proxy: %s", as, alike)
	case seen.Naming == "trusted":
		e.ok(ctx, Address, "a proxy has named %s", as)
	case isBehind(seen.Address, a) || a.Header.Get("Server") != "" || a.Header.Get("Via") != "":
		e.problem(ctx, Address, "let the proxy set X-Forwarded-For, and add its network to http.trusted_proxies", "there is a proxy, which says nothing about its clients: the gateway sees %s", as)
	default:
		e.ok(ctx, Address, "the gateway sees %s, and no proxy", as)
	}
}

// isBehind reports whether the address that the gateway sees is that of something in between,
// as far as can be known: the own one with another port, or a private one although the server
// has a public one. Behind address translation the two ends of a connection may have different
// addresses.
func isBehind(seen string, a *answer) bool {
	here, there := addressOf(a.local), addressOf(a.remote)
	at, err := netip.ParseAddrPort(seen)
	if err != nil {
		bare, err := netip.ParseAddr(seen)
		return err == nil && bare.Unmap() != here.Addr() && isInternal(bare) && !isInternal(there.Addr())
	}
	if at.Addr().Unmap() == here.Addr() {
		return at.Port() != here.Port()
	}
	return isInternal(at.Addr()) && !isInternal(there.Addr())
}

func isInternal(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast()
}

func addressOf(a net.Addr) netip.AddrPort {
	if a == nil {
		return netip.AddrPort{}
	}
	p, _ := netip.ParseAddrPort(a.String())
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}
