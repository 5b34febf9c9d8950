package adapter

import "net/url"

// Through says in a message that requests go through a proxy: " through the proxy HOST"; empty:
// there is none. The arguments are the result of the Proxy of an http.Transport.
func Through(proxy *url.URL, err error) string {
	if err != nil || proxy == nil {
		return ""
	}
	return " through the proxy " + proxy.Host // without credentials
}
