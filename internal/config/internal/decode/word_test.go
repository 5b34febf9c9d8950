package decode

import "testing"

func TestParseNetwork(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/8": "10.0.0.0/8", "2001:db8::/32": "2001:db8::/32", "0.0.0.0/0": "0.0.0.0/0",
		"192.0.2.1": "192.0.2.1/32", "2001:db8::1": "2001:db8::1/128", "::ffff:192.0.2.1": "192.0.2.1/32",
	} {
		if got, ok := ParseNetwork(text); !ok || got.String() != want {
			t.Errorf("%s: %v, %t, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "10.0.0.1/8", "10.0.0.0/33", "proxy", "fe80::1%eth0", "::ffff:10.0.0.0/104", "10.0.0.0-10.0.0.9"} {
		if got, ok := ParseNetwork(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestSameListener(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:8080", "127.0.0.1:8080", true}, {":8080", "127.0.0.1:8080", true}, {"0.0.0.0:8080", "127.0.0.1:8080", true},
		{"[::]:8080", "localhost:8080", true},
		{"127.0.0.1:8080", "127.0.0.2:8080", false}, {":8080", ":9090", false}, {"[::1]:8080", "0.0.0.0:8080", false}, {":0", ":0", false}, {"127.0.0.1:0", ":0", false},
	} {
		if SameListener(c.a, c.b) != c.want || SameListener(c.b, c.a) != c.want {
			t.Errorf("%s and %s: want %t", c.a, c.b, c.want)
		}
	}
}
