package adapter

import "testing"

func TestValidAddress(t *testing.T) {
	for address, want := range map[string]bool{
		"backend:9000":                   true,
		"127.0.0.1:9000":                 true,
		"[::1]:9000":                     true,
		"dns:backend:9000":               true,
		"dns:///backend:9000":            true,
		"dns://8.8.8.8:53/backend:9000":  true,
		"unix:///run/backend.sock":       true,
		"unix:run/backend.sock":          true,
		"passthrough:///anything at all": true,

		"":                         false,
		"backend":                  false,
		":9000":                    false,
		"backend:":                 false,
		"backend:0":                false,
		"backend:65536":            false,
		"backend:http":             false,
		"back end:9000":            false,
		"::1:9000":                 false,
		"backend:9000/path":        false,
		"http://backend:9000":      false,
		"https://backend":          false,
		"dsn:///backend:9000":      false,
		"dns:///backend":           false,
		"dns:///":                  false,
		"dns://backend:9000":       false, // an authority, and nothing to look up
		"dns://8.8. 8.8/backend:1": false,
		"unix:":                    false,
		"unix://":                  false,
	} {
		if got := ValidAddress(address); got != want {
			t.Errorf("%q: got %t, want %t", address, got, want)
		}
	}
}
