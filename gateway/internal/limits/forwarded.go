package limits

import (
	"iter"
	"net/netip"
	"strings"
)

// fromRight yields the elements of a list header, the last one first. Commas within
// quotation marks do not count (RFC 7239, section 4). It reads from the right, so
// that nothing on the left can change how the element that a proxy appended is read.
func fromRight(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := len(lines) - 1; i >= 0; i-- {
			for rest, more := lines[i], true; more; {
				var element string
				rest, element, more = cutLast(rest, ',')
				if !yield(element) {
					return
				}
			}
		}
	}
}

// cutLast cuts s at the last separator outside of quotation marks.
func cutLast(s string, separator byte) (before, after string, found bool) {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == separator && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return "", s, false
}

// forwardedFor returns the address of the "for" parameter of one element of
// Forwarded. The result is not valid if there is none, or if it is no address:
// unknown, or a name that the proxy made up (RFC 7239, section 6).
func forwardedFor(element string) netip.Addr {
	for rest, more := element, true; more; {
		var pair string
		rest, pair, more = cutLast(rest, ';')
		name, value, _ := strings.Cut(pair, "=")
		if strings.EqualFold(strings.TrimSpace(name), "for") {
			return nodeAddress(value)
		}
	}
	return netip.Addr{}
}

// nodeAddress reads an address as proxies write it: 192.0.2.1, 192.0.2.1:80,
// 2001:db8::1, [2001:db8::1] or [2001:db8::1]:80, with or without quotation marks.
// Any other text yields an invalid address.
func nodeAddress(text string) netip.Addr {
	text = strings.TrimSpace(text)
	if inner, opened := strings.CutPrefix(text, `"`); opened {
		text = strings.TrimSuffix(inner, `"`)
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return bare(a)
	}
	if p, err := netip.ParseAddrPort(text); err == nil {
		return bare(p.Addr())
	}
	inner, opened := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if a, err := netip.ParseAddr(inner); opened && closed && err == nil {
		return bare(a)
	}
	return netip.Addr{}
}
