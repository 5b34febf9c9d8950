package adapter

import (
	"net/http"
	"net/url"
	"strings"
)

// Proxy returns the proxy through which connections to an address go; nil: there is none. gRPC
// uses the one that the environment names for https, even without TLS.
func (o DialOptions) Proxy(address string) (*url.URL, error) {
	target := strings.TrimPrefix(address[strings.LastIndexByte(address, '/')+1:], "dns:")
	if o.Network != nil || !ValidHostPort(target) { // such as a socket of this machine
		return nil, nil
	}
	return http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: target}})
}
