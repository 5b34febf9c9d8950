package limits

import (
	"net/http/httptest"
	"testing"
)

// TestNamingOf checks what a client is told of how it is known.
func TestNamingOf(t *testing.T) {
	for _, c := range []struct {
		header, remote, name, value string
		want                        Naming
	}{
		{"X-Forwarded-For", "192.0.2.1:5", "", "", NamingDirect},
		{"X-Forwarded-For", "192.0.2.1:5", "X-Forwarded-For", "198.51.100.9", NamingIgnored},
		{"X-Forwarded-For", "192.0.2.1:5", "Forwarded", "for=198.51.100.9", NamingIgnored},
		{"X-Forwarded-For", "192.0.2.1:5", "X-Real-IP", "198.51.100.9", NamingIgnored},
		{"X-Forwarded-For", "192.0.2.1:5", "Via", "1.1 proxy", NamingIgnored},
		{"X-Forwarded-For", "10.0.0.1:5", "", "", NamingMissing},
		{"X-Forwarded-For", "10.0.0.1:5", "Forwarded", "for=198.51.100.9", NamingMissing},
		{"X-Forwarded-For", "10.0.0.1:5", "X-Forwarded-For", "unknown", NamingMissing},
		{"X-Forwarded-For", "10.0.0.1:5", "X-Forwarded-For", "198.51.100.9", NamingTrusted},
		{"X-Forwarded-For", "10.0.0.1:5", "X-Forwarded-For", "10.0.0.1", NamingTrusted}, // the client is on the machine of the proxy
		{headerForwarded, "10.0.0.1:5", "Forwarded", "for=198.51.100.9", NamingTrusted},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.remote
		if c.name != "" {
			r.Header.Set(c.name, c.value)
		}
		if got := trusting(c.header, "10.0.0.0/8").NamingOf(r); got != c.want {
			t.Errorf("from %s with %s: %q, and %s is read: %q, want %q", c.remote, c.name, c.value, c.header, got, c.want)
		}
	}
}
