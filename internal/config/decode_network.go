package config

import "net/netip"

// networks reads a list of networks, or of single addresses.
func (d *decoder) networks(into *[]netip.Prefix) field {
	const want = `a network such as 10.0.0.0/8 or "2001:db8::/32", or an address`
	return func(v value) {
		var texts []string
		d.list(want, func(s string) bool { _, ok := parseNetwork(s); return ok }, &texts)(v)
		for _, text := range texts {
			network, _ := parseNetwork(text)
			*into = append(*into, network)
		}
	}
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
