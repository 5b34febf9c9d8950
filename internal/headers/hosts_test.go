package headers

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestHostsAllow(t *testing.T) {
	h := NewHosts([]string{"App.Example.com.", "*.apps.example.com", "backend"})
	for authority, want := range map[string]bool{
		"": true, "localhost": true, "LocalHost:8080": true, "localhost.": true, "a.localhost": true, "a.b.localhost:1": true,
		"ip6-localhost": true, "ip6-loopback:80": true,
		"127.0.0.1": true, "127.0.0.1:8080": true, "10.1.2.3": true, "[::1]": true, "[::1]:8080": true, "[fe80::1%25eth0]:80": true,
		"[::ffff:127.0.0.1]:80": true, "203.0.113.7:443": true, "127.0.0.1:": true,
		"app.example.com": true, "APP.EXAMPLE.COM.:443": true, "backend:9000": true,
		"x.apps.example.com": true, "x.y.apps.example.com": true,

		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "evil-localhost": false,
		"apps.example.com": false, ".apps.example.com": false, "xapps.example.com": false, "sub.app.example.com": false,
		"127.0.0.1.evil.example": false, "127.0.0.1.": false, "127.1": false, "0x7f.1": false, "2130706433": false,
		".localhost": false, "..localhost": false, "localhost..": false, ".": false, ":": false, "*": false,
		"[localhost]": false, "[127.0.0.1]": false, "[::1": false, "::1": false, "[::1]x": false, "[::1]:x": false, "[::1]:99999": false,
		"localhost:x": false, "localhost:99999": false, "a@localhost": false, "localhost/": false, "local host": false, "evil.example#.localhost": false,
		"evil.example\x00.localhost": false, "bücher.localhost": false, strings.Repeat("a", 64) + ".localhost": false,
	} {
		if got := h.Allow(authority); got != want {
			t.Errorf("allow(%q) = %t, want %t", authority, got, want)
		}
	}
	if !NewHosts([]string{"*"}).Allow("evil.example") {
		t.Error(`"*" does not allow every name`)
	}
}

func TestCheckHost(t *testing.T) {
	for _, name := range []string{"a", "app.example.com", "APP.example.com.", "*.example.com", "*", "my_service"} {
		if err := CheckHost(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"": "want a name", "https://a": "without scheme", "a:80": "port", "a/b": "path", "*.": "want a name", "a.*.b": "want a name", "**": "want a name",
		"a..b": "want a name", ".a": "want a name", "127.0.0.1": "always served", "[::1]": "always served", "::1": "always served", "bücher.de": "want a name",
	} {
		if err := CheckHost(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// FuzzHosts checks that no authority passes unless it is an IP address or ends in an
// allowed name, whatever its spelling.
func FuzzHosts(f *testing.F) {
	for _, seed := range []string{"localhost:80", "[::1]:80", "evil.example", "a.localhost.", "127.0.0.1.:1", "[fe80::1%25a]", "x@localhost", "[::1]localhost"} {
		f.Add(seed)
	}
	h := NewHosts([]string{"app.example.com", "*.example.org"})
	f.Fuzz(func(t *testing.T, authority string) {
		allowed := h.Allow(authority)
		if upper := h.Allow(strings.ToUpper(authority)); isASCII(authority) && upper != allowed && !strings.Contains(authority, "%") {
			t.Errorf("%q is allowed: %t, in capitals: %t", authority, allowed, upper)
		}
		if !allowed || authority == "" {
			return
		}
		// The host as a browser would read it.
		host, _, err := net.SplitHostPort(authority)
		if err != nil {
			host = strings.TrimSuffix(authority, ":")
		}
		host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
		if _, err := netip.ParseAddr(strings.Replace(host, "%25", "%", 1)); err == nil {
			return
		}
		for _, suffix := range []string{"localhost", ".localhost", "ip6-loopback", "app.example.com", ".example.org"} {
			if strings.HasSuffix(host, suffix) && !strings.ContainsAny(host, "/?#@\\ \x00[]") {
				return
			}
		}
		t.Errorf("%q is allowed", authority)
	})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 127 })
}

func TestIsLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:8080": true, "127.9.9.9:0": true, "[::1]:8080": true, "[::ffff:127.0.0.1]:80": true, "localhost:80": true, "LOCALHOST.:80": true,
		"a.localhost:1": true, "ip6-localhost:1": true,
		":8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "10.0.0.1:80": false, "example.com:80": false, "localhost.example.com:80": false,
		"": false, "localhost": false, "/run/gateway.sock": false,
	} {
		if got := IsLoopback(address); got != want {
			t.Errorf("IsLoopback(%q) = %t, want %t", address, got, want)
		}
	}
	if !IsLoopback((&net.TCPAddr{IP: net.IPv6loopback, Port: 1}).String()) {
		t.Error("the address of a listener on ::1 is no loopback")
	}
}
