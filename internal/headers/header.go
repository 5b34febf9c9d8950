package headers

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// WantPageHeader describes what IsPageHeader accepts.
const WantPageHeader = "the name of a header that pages may add, such as X-Tenant; not *, and neither a header that browsers keep to themselves, such as Cookie, nor one in which proxies report their client, such as X-Forwarded-For"

// notOfPages are headers that no page of another origin may be allowed to send.
var notOfPages = []string{
	// Browsers do not let a page set these (Fetch standard, section 2.2.2).
	"Accept-Charset", "Accept-Encoding", "Access-Control-Request-Headers", "Access-Control-Request-Method", "Access-Control-Request-Private-Network",
	"Connection", "Content-Length", "Cookie", "Cookie2", "Date", "Dnt", "Expect", "Host", "Keep-Alive", "Origin", "Referer", "Set-Cookie", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade", "Via",
	// Proxies report their client in these. One that does not know a header passes it on.
	"Cf-Connecting-Ip", "Client-Ip", "Fastly-Client-Ip", "Forwarded", "True-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For", "X-Real-Ip",
}

// prefixesNotOfPages are the beginnings of more such headers.
var prefixesNotOfPages = []string{"Proxy-", "Sec-", "X-Envoy-", "X-Forwarded-"}

// IsPageHeader reports whether pages of other origins may be allowed to send a header of that
// name. "*" is none: browsers do not take it as a wildcard where credentials are sent.
func IsPageHeader(name string) bool {
	canonical := http.CanonicalHeaderKey(name)
	return httpguts.ValidHeaderFieldName(name) && name != "*" && !slices.Contains(notOfPages, canonical) &&
		!slices.ContainsFunc(prefixesNotOfPages, func(prefix string) bool { return strings.HasPrefix(canonical, prefix) })
}
