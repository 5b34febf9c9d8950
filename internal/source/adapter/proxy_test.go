package adapter

import (
	"context"
	"net"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
)

func TestProxy(t *testing.T) {
	if !streamtest.InEnvironment(t, "HTTPS_PROXY=http://user:secret@proxy.test:3128", "NO_PROXY=.direct.test") {
		return
	}
	for address, want := range map[string]string{
		"backend:9000":                  "proxy.test:3128",
		"dns:backend:9000":              "proxy.test:3128",
		"dns://8.8.8.8:53/backend:9000": "proxy.test:3128",
		"passthrough:///backend:9000":   "proxy.test:3128",
		"a.direct.test:9000":            "",
		"dns:///a.direct.test:9000":     "",
		"127.0.0.1:9000":                "",
		"unix:///run/backend.sock":      "",
	} {
		if got, err := (DialOptions{}).Proxy(address); err != nil || got == nil && want != "" || got != nil && got.Host != want {
			t.Errorf("%s: got %v, %v, want %q", address, got, err, want)
		}
	}
	o := DialOptions{Network: func(context.Context, string) (net.Conn, error) { return nil, nil }}
	if got, err := o.Proxy("backend:9000"); err != nil || got != nil {
		t.Errorf("a connection of our own: got %v, %v", got, err)
	}
}
