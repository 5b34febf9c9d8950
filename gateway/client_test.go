package gateway

import (
	"testing"
	"testing/synctest"
)

// TestClientsLearnTheirAddress checks that a client is told for which address it is counted,
// and how far a proxy has to do with it.
func TestClientsLearnTheirAddress(t *testing.T) {
	for name, c := range map[string]struct {
		cfg     Config
		headers []string
		want    string
	}{
		"nobody between":    {Config{}, nil, `"address":"203.0.113.1:1","naming":"direct"`},
		"a stranger":        {Config{}, []string{"X-Forwarded-For: 192.0.2.7"}, `"address":"203.0.113.1:1","naming":"ignored"`},
		"a trusted proxy":   {behindProxy(Config{}), []string{"X-Forwarded-For: 192.0.2.7"}, `"address":"192.0.2.7","naming":"trusted"`},
		"a proxy that errs": {behindProxy(Config{}), nil, `"address":"203.0.113.1:1","naming":"missing"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, c.cfg, "a")
				x := r.get("/v1/client", c.headers...)
				if got, want := x.Text(), `{"instance":"test",`+c.want+"}\n"; x.StatusCode != 200 || got != want {
					t.Errorf("%d %s, want %s", x.StatusCode, got, want)
				}
				if got := x.Header.Get("Cache-Control"); got != "no-store" {
					t.Errorf("Cache-Control %q", got)
				}
			})
		})
	}
}
