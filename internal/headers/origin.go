package headers

import (
	"net"
	"net/url"
)

// IsOrigin reports whether text is the origin of a web page as a browser sends it, such
// as https://app.example.com (RFC 6454, section 6.2).
func IsOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Scheme+"://"+u.Host == text
}

// IsSafeOrigin reports whether text is an origin to which nobody on the way can read what a
// browser sends: https, or this machine.
func IsSafeOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && IsOrigin(text) && (u.Scheme == "https" || IsLoopback(net.JoinHostPort(u.Hostname(), "80")))
}
