package config

import "net/netip"

func (d *decoder) readNetwork(v value, into *netip.Prefix) {
	var s string
	d.readText(v, texts["network"], &s)
	*into, _ = parseNetwork(s)
}

func validNetwork(s string) bool {
	_, ok := parseNetwork(s)
	return ok
}

// parseNetwork reads a network, without bits beyond its prefix length: those
// would suggest that something else was meant.
func parseNetwork(s string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), a.Zone() == ""
	}
	p, err := netip.ParsePrefix(s)
	return p, err == nil && p == p.Masked() && !p.Addr().Is4In6()
}
