package introspection

import (
	"bytes"
	"net/netip"
	"strings"
)

// Filter selects streams. An empty field selects all.
type Filter struct {
	Watch       string
	Application string
	Network     string
	Transport   string
	Principal   string // see Principal.Text
	ClientID    string // see Principal.ClientText
	// Search is a text in the address, the user agent, the id, the principal, or the name of a watch.
	Search string
}

func (f *Filter) accepts(s *Slice, one *Stream, client *Client) bool {
	return s.Wanted(one, f.Watch) &&
		(f.Transport == "" || f.Transport == one.Transport) &&
		(f.Application == "" || f.Application == Application(client.UserAgent())) &&
		(f.Network == "" || f.Network == NetworkName(one.Network())) &&
		(f.Principal == "" || f.Principal == client.Text()) &&
		(f.ClientID == "" || f.ClientID == client.ClientText()) &&
		(f.Search == "" || f.found(s, one, client))
}

func (f *Filter) found(s *Slice, one *Stream, client *Client) bool {
	if containsFold(client.UserAgent(), f.Search) || client.contains(f.Search) || strings.Contains(one.id(), strings.ToLower(f.Search)) {
		return true
	}
	for _, followed := range s.Follows(one) {
		if containsFold(followed.Watch, f.Search) {
			return true
		}
	}
	var text [64]byte
	return bytes.Contains(one.append(text[:0]), []byte(strings.ToLower(f.Search)))
}

// containsFold reports whether a text contains another one, in whatever case. It allocates
// nothing.
func containsFold(text, part string) bool {
	for i := 0; i+len(part) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// Property is what groups of subscribers have in common.
type Property string

// The properties.
const (
	ByApplication Property = "application"
	ByNetwork     Property = "network"
	ByTransport   Property = "transport"
	ByPrincipal   Property = "principal"
	ByClientID    Property = "client_id"
	ByWatch       Property = "watch" // a stream belongs to several of these groups
)

// Properties are all of them.
var Properties = []Property{ByApplication, ByNetwork, ByTransport, ByPrincipal, ByClientID, ByWatch}

// Names returns the names of properties or orders, with commas between them.
func Names[T ~string](all []T) string {
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = string(one)
	}
	return strings.Join(names, ", ")
}

func (p Property) of(one *Stream, client *Client) string {
	switch p {
	case ByApplication:
		return Application(client.UserAgent())
	case ByNetwork:
		return NetworkName(one.Network())
	case ByPrincipal:
		return client.Text()
	case ByClientID:
		return client.ClientText()
	default:
		return one.Transport
	}
}

// The networks of clients: those that one provider or one site usually has.
const (
	networkIPv4 = 24
	networkIPv6 = 56
)

// Network returns the network of the stream's client; not valid if its address is unknown.
func (o Origin) Network() netip.Prefix {
	a := netip.AddrFrom16(o.address).Unmap()
	switch {
	case o.address == [16]byte{}:
		return netip.Prefix{}
	case a.Is4():
		return netip.PrefixFrom(a, networkIPv4).Masked()
	default:
		return netip.PrefixFrom(a, networkIPv6).Masked()
	}
}

// NetworkName returns the text of a network: 192.0.2.0/24, or "unknown".
func NetworkName(n netip.Prefix) string {
	if !n.IsValid() {
		return unknown
	}
	return n.String()
}

// browsers are the products that name a browser, most specific first: most browsers name others too.
var browsers = []struct{ token, name string }{
	{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
	{"CriOS/", "Chrome"}, {"HeadlessChrome/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
}

// Application returns the name of the program of a user agent: its first product, or the browser.
// It allocates nothing.
func Application(agent string) string {
	product, _, _ := strings.Cut(agent, "/")
	product, _, _ = strings.Cut(product, " ")
	if product == "Mozilla" {
		for _, b := range browsers {
			if strings.Contains(agent, b.token) {
				return b.name
			}
		}
	}
	if product == "" {
		return unknown
	}
	return product
}
