package credential

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// request has the parts of a request over HTTP, or of a call, that identify its client. Owned
// by its handler.
type request struct {
	ctx     context.Context
	header  func(name string) []string
	tickets []string
	cookies []string // of a session
	tls     *tls.ConnectionState
	peer    netip.Addr // not valid: without an IP address, as of a Unix socket
	client  netip.Addr // for which failures are counted
	host    string
}

func (a *Authenticator) ofRequest(r *http.Request) *request {
	out := &request{ctx: r.Context(), header: r.Header.Values, tls: r.TLS, peer: address(r.RemoteAddr), host: r.Host}
	out.client = out.peer
	if a.cfg.Client != nil {
		out.client = a.cfg.Client(r)
	}
	out.tickets, _ = cutTickets(r.URL.RawQuery)
	out.cookies = a.cookies(out, cookieBase)
	return out
}

// cookies returns the values of the cookies of a name in the headers of a request.
func (a *Authenticator) cookies(r *request, base string) (values []string) {
	lines := r.header("Cookie")
	if len(lines) == 0 {
		return nil
	}
	all := http.Request{Header: http.Header{"Cookie": lines}}
	for _, c := range all.CookiesNamed(a.cookieName(r, base)) {
		values = append(values, c.Value)
	}
	return values
}

// cutTickets returns the tickets in a query, and the query without them. A ticket that is not
// encoded correctly is returned as it is, so that it counts as invalid and not as absent.
func cutTickets(query string) (tickets []string, rest string) {
	if !strings.Contains(query, ticketParameter) && !strings.Contains(query, "%") {
		return nil, query
	}
	var others []string
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(name); err != nil || decoded != ticketParameter {
			others = append(others, pair)
			continue
		}
		if decoded, err := url.QueryUnescape(value); err == nil {
			value = decoded
		}
		tickets = append(tickets, value)
	}
	return tickets, strings.Join(others, "&")
}

// WithoutTicket returns the request without its ticket; r itself if it has none.
func WithoutTicket(r *http.Request) *http.Request {
	tickets, rest := cutTickets(r.URL.RawQuery)
	if len(tickets) == 0 {
		return r
	}
	at := *r.URL
	at.RawQuery = rest
	out := r.WithContext(r.Context())
	out.URL, out.RequestURI = &at, at.RequestURI()
	return out
}

// IsOfOurPage reports whether a request comes from a page of this gateway or of an allowed
// origin, or from a script, so that its cookies and certificates count.
func (a *Authenticator) IsOfOurPage(r *http.Request) bool { return a.cfg.IsOfOurPage(r) }

// IsOfOurPage is like that of an Authenticator with the configuration, of which it uses
// PublicURL and AllowedOrigins.
func (c *Config) IsOfOurPage(r *http.Request) bool {
	return c.isOfOurPage(&request{header: r.Header.Values, tls: r.TLS, peer: address(r.RemoteAddr), host: r.Host})
}

func (a *Authenticator) ofCall(ctx context.Context) *request {
	out := &request{ctx: ctx}
	out.header = func(name string) []string { return metadata.ValueFromIncomingContext(ctx, name) }
	if from, ok := peer.FromContext(ctx); ok {
		if from.Addr != nil {
			out.peer = address(from.Addr.String())
		}
		out.tls = tlsOf(from.AuthInfo)
	}
	if authority := out.header(":authority"); len(authority) > 0 {
		out.host = authority[0]
	}
	out.client = out.peer
	if a.cfg.ClientOfCall != nil {
		out.client = a.cfg.ClientOfCall(ctx)
	}
	out.cookies = a.cookies(out, cookieBase)
	return out
}

// tlsOf returns the state of TLS in what is known of a connection; nil: it has no TLS. The
// server may have wrapped what its transport knows, with Unwrap, as errors are wrapped.
func tlsOf(info credentials.AuthInfo) *tls.ConnectionState {
	for {
		switch known := info.(type) {
		case credentials.TLSInfo:
			return &known.State
		case interface{ Unwrap() credentials.AuthInfo }:
			info = known.Unwrap()
		default:
			return nil
		}
	}
}

// address parses the address of a peer. The result is not valid if it is not an IP address.
func address(remote string) netip.Addr {
	if p, err := netip.ParseAddrPort(remote); err == nil {
		return p.Addr().Unmap().WithZone("")
	}
	a, _ := netip.ParseAddr(remote)
	return a.Unmap().WithZone("")
}

// isOfOurPage reports whether a request comes from a page that may act for its user: one
// of this gateway, or of an allowed origin. Browsers say where a request comes from in
// Sec-Fetch-Site, and old ones in Origin; a request without either comes from a script,
// which sends only what it is told to.
func (c *Config) isOfOurPage(r *request) bool {
	sites, origins := r.header("Sec-Fetch-Site"), r.header("Origin")
	if len(sites) > 1 || len(origins) > 1 {
		return false
	}
	if len(origins) == 1 && slices.Contains(c.AllowedOrigins, origins[0]) {
		return true
	}
	if len(sites) == 1 {
		// "none" is the user, who has typed the address or chosen a bookmark.
		return sites[0] == "same-origin" || sites[0] == "none"
	}
	return len(origins) == 0 || c.isOurOrigin(r, origins[0])
}

func (c *Config) isOurOrigin(r *request, origin string) bool {
	if c.PublicURL != "" {
		return origin == c.PublicURL
	}
	scheme := "http://"
	if c.isSecure(r) {
		scheme = "https://"
	}
	return r.host != "" && strings.EqualFold(origin, scheme+r.host)
}

// isSecure reports whether browsers reach the gateway over https.
func (c *Config) isSecure(r *request) bool {
	if c.PublicURL != "" {
		return strings.HasPrefix(c.PublicURL, "https://")
	}
	return r.tls != nil || !r.peer.IsLoopback()
}
