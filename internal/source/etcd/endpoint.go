package etcd

import (
	"net/url"
	"strings"

	"github.com/watchtide/watchtide/internal/source/adapter"
)

// WantEndpoint describes what ValidEndpoint accepts, for a user who wrote
// something else.
const WantEndpoint = `a member's address for clients, such as "https://etcd-1:2379" or "etcd-1:2379", with a port from 1 to 65535`

// ValidEndpoint reports whether a member can be at an endpoint: host:port, alone
// or after http:// or https://.
func ValidEndpoint(text string) bool {
	_, ok := parseEndpoint(text)
	return ok
}

// endpoint is where a member serves clients.
type endpoint struct {
	scheme  string // "http", "https", or "": depends on whether TLS is configured
	address string // host:port
}

func parseEndpoint(text string) (e endpoint, ok bool) {
	e.address = text
	if scheme, rest, found := strings.Cut(text, "://"); found {
		u, err := url.Parse(text)
		if err != nil || scheme != "http" && scheme != "https" || u.Host != strings.TrimSuffix(rest, "/") {
			return e, false
		}
		e.scheme, e.address = scheme, u.Host
	}
	return e, adapter.ValidHostPort(e.address) && !strings.ContainsAny(e.address, "@?#")
}

// url returns the endpoint as the client library expects it.
func (e endpoint) url(secure bool) string {
	switch {
	case e.scheme != "":
		return e.scheme + "://" + e.address
	case secure:
		return "https://" + e.address
	default:
		return "http://" + e.address
	}
}
