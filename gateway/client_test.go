package gateway

import (
	"strings"
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
		"nobody between":    {Config{}, nil, `"address":"203.0.113.1:1","naming":"direct","operator":false`},
		"a stranger":        {Config{}, []string{"X-Forwarded-For: 192.0.2.7"}, `"address":"203.0.113.1:1","naming":"ignored","operator":false`},
		"a trusted proxy":   {behindProxy(Config{}), []string{"X-Forwarded-For: 192.0.2.7"}, `"address":"192.0.2.7","naming":"trusted","operator":false`},
		"a proxy that errs": {behindProxy(Config{}), nil, `"address":"203.0.113.1:1","naming":"missing","operator":false`},
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

// TestClientsLearnWhetherTheyAreOperators checks that "operator" is true exactly where
// /v1/subscribers answers the same client, so that a page need not be refused to find out.
func TestClientsLearnWhetherTheyAreOperators(t *testing.T) {
	check := func(at *apiRig, want bool, headers ...string) {
		t.Helper()
		answer := at.get("/v1/client", headers...)
		list := at.get("/v1/subscribers", headers...)
		if got := strings.Contains(answer.text, `"operator":true`); got != want || (list.StatusCode == 200) != want {
			t.Errorf("%s %s and %s, want %t", answer.Request.URL, answer.text, list.Status, want)
		}
	}
	r := newGuarded(t, nil)
	for _, at := range []*apiRig{r.apiRig, r.operations} {
		for _, name := range []string{"nobody", "outsider", "ann"} {
			check(at, false, r.as(name)...)
		}
		check(at, true, r.as("sam")...)
	}
	check(newGuarded(t, func(c *Config) { c.Access.OperationsRole = "" }).apiRig, false, r.as("sam")...)
	check(newAPIRig(t, Config{}), true)
	quiet := newGuarded(t, func(c *Config) { c.Metrics = false })
	check(quiet.apiRig, false, quiet.as("sam")...)
}
