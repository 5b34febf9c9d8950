package etcd

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestConfig(t *testing.T) {
	one := []string{"etcd:2379"}
	for name, test := range map[string]struct {
		config Config
		want   string // a part of the error; empty: none
	}{
		"the least":            {Config{Endpoints: one}, ""},
		"everything":           {Config{Endpoints: []string{"https://a:1", "b:2"}, TLS: &tls.Config{}, Username: "u", PasswordFile: "p", StallAfter: time.Second}, ""},
		"no endpoint":          {Config{}, "no endpoint"},
		"no port":              {Config{Endpoints: []string{"etcd:1", "etcd"}}, `endpoint "etcd": want a member's address`},
		"plaintext beside TLS": {Config{Endpoints: []string{"http://etcd:1"}, TLS: &tls.Config{}}, `endpoint "http://etcd:1": want https://`},
		"no password":          {Config{Endpoints: one, Username: "u"}, "both username and password_file, or neither"},
		"no user":              {Config{Endpoints: one, PasswordFile: "p"}, "both username and password_file, or neither"},
		"a time below 0":       {Config{Endpoints: one, RequestTimeout: -1}, "want 0 or more"},
		"too short":            {Config{Endpoints: one, StallAfter: time.Millisecond}, `stall after "1ms": want 500ms or more`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(test.config)
			if failed := err != nil; failed != (test.want != "") || failed && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestValidEndpoint(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"etcd:2379": true, "127.0.0.1:2379": true, "[::1]:2379": true, "http://etcd:2379": true,
		"https://etcd-1.example.com:2379": true, "https://etcd:2379/": true, "https://[::1]:2379": true,
		"": false, "etcd": false, ":2379": false, "etcd:0": false, "etcd:65536": false, "etcd:http": false,
		"http://etcd": false, "http://": false, "ftp://etcd:2379": false, "unix:///run/etcd": false,
		"http://etcd:2379/v3": false, "http://user:pass@etcd:2379": false, "http://etcd:2379?x": false,
		"etcd :2379": false, "http://etcd:2379,http://b:2379": false, "etcd:2379,b:2379": false,
	} {
		if got := ValidEndpoint(endpoint); got != want {
			t.Errorf("ValidEndpoint(%q) is %t, want %t", endpoint, got, want)
		}
	}
}

func TestEndpointURL(t *testing.T) {
	for _, test := range []struct {
		text   string
		secure bool
		want   string
	}{
		{"etcd:1", false, "http://etcd:1"}, {"etcd:1", true, "https://etcd:1"},
		{"https://etcd:1/", false, "https://etcd:1"}, {"http://etcd:1", false, "http://etcd:1"},
	} {
		e, ok := parseEndpoint(test.text)
		if got := e.url(test.secure); !ok || got != test.want {
			t.Errorf("%q, secure %t: %q (%t), want %q", test.text, test.secure, got, ok, test.want)
		}
	}
}

func FuzzEndpoint(f *testing.F) {
	for _, seed := range []string{"etcd:2379", "https://etcd:2379/", "http://[::1]:1", "://", "http://a:1#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if e, ok := parseEndpoint(text); ok && e.scheme == "" && e.address != text {
			t.Errorf("%q is read as %+v", text, e)
		}
	})
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]struct{ known, supported, ordered bool }{
		"3.3.27": {true, false, false}, "3.4.0": {true, true, false}, "3.4.23": {true, true, false},
		"3.4.31": {true, true, true}, "3.5.12": {true, true, false}, "3.5.13": {true, true, true},
		"3.5.0-rc.1": {true, true, false}, "3.6.0-alpha.0": {true, true, true}, "3.7.3": {true, true, true},
		"3.7.3+git": {true, true, true}, "4.0.0": {true, true, true}, "2.3.8": {true, false, false},
		"": {}, "3.7": {}, "3.7.3.1": {}, "a.b.c": {}, "3.-1.0": {}, "3.99999.0": {},
	} {
		v, ok := parseVersion(text)
		if ok != want.known || ok && (v.supported() != want.supported || v.ordered() != want.ordered) {
			t.Errorf("%q: known %t, supported %t, ordered %t; want %+v", text, ok, v.supported(), v.ordered(), want)
		}
	}
}

func FuzzVersion(f *testing.F) {
	for _, seed := range []string{"3.4.23", "3.6.0-rc.1", "3.5", "-", "+", "..", "3.5.13-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v, ok := parseVersion(text); ok && v.ordered() && !v.supported() {
			t.Errorf("%q is read as %+v, which is ordered and not supported", text, v)
		}
	})
}

func TestKeyRange(t *testing.T) {
	for prefix, want := range map[string][2]string{
		"":             {"\x00", "\x00"},
		"/a/":          {"/a/", "/a0"},
		"a\xff":        {"a\xff", "b"},
		"\xff":         {"\xff", "\x00"},
		"\xff\xff":     {"\xff\xff", "\x00"},
		"\x00":         {"\x00", "\x01"},
		"a\xfe\xff":    {"a\xfe\xff", "a\xff"},
		"key\xff\xff1": {"key\xff\xff1", "key\xff\xff2"},
	} {
		if k := newKeyRange(prefix); k.start != want[0] || k.end != want[1] {
			t.Errorf("prefix %q is from %q to %q, want %q", prefix, k.start, k.end, want)
		}
	}
}

// TestEpochs: the same for replicas with the same knowledge; short; and
// different otherwise.
func TestEpochs(t *testing.T) {
	a, b := newEpochs("/a/", stream.AnyValues), newEpochs("/a/", stream.AnyValues)
	if a.of(1) != b.of(1) || a.of(1) == a.of(2) {
		t.Errorf("epochs %q, %q for one cluster, %q for another", a.of(1), b.of(1), a.of(2))
	}
	if other := newEpochs("/a/", stream.TextValues); other.of(1) == a.of(1) {
		t.Error("the same epoch for other values")
	}
	if other := newEpochs("/b/", stream.AnyValues); other.of(1) == a.of(1) {
		t.Errorf("epoch %q for two prefixes", a.of(1))
	}
	seen := map[string]bool{a.of(1): true}
	for range 20 {
		a.replace(1)
		if seen[a.of(1)] || a.of(2) != b.of(2) {
			t.Errorf("after a replacement %q, which there was; the other cluster has %q, want %q", a.of(1), a.of(2), b.of(2))
		}
		seen[a.of(1)] = true
		if view := a.of(1) + ".12345678"; stream.CanonicalEpoch(view) != view {
			t.Errorf("epoch %q is too long for a view", view)
		}
	}
}

// TestWords: users get the system's own error text.
func TestWords(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), "plain"},
		{status.Error(codes.Unavailable, "error reading from server: EOF"), "error reading from server: EOF"},
		{status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp a:1: \"x\""`), `dial tcp a:1: "x"`},
		{status.Error(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: EOF"`), "authentication handshake failed: EOF"},
		{status.Error(codes.Unavailable, `connection error: desc = "cut off`), `connection error: desc = "cut off`},
	} {
		if got := words(test.err); got != test.want {
			t.Errorf("%v: %q, want %q", test.err, got, test.want)
		}
	}
}

func TestNoneOf(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	if err := noneOf([]error{one}); err != one {
		t.Errorf("got %v, want the one that there is", err)
	}
	err := noneOf([]error{one, two})
	if err.Error() != "no endpoint answers: one; two" || !errors.Is(err, two) {
		t.Errorf("got %v", err)
	}
}

// TestVersionsThatKeepDeletes: a watch from the past is trusted with deletes from the releases on that send all of them.
func TestVersionsThatKeepDeletes(t *testing.T) {
	for text, want := range map[string]bool{
		"2.3.8": false, "3.3.27": false, "3.4.0": false, "3.4.35": false, "3.4.36": true, "3.4.37": true,
		"3.5.0": false, "3.5.17": false, "3.5.18": true, "3.5.21": true, "3.5.18-rc.0": false,
		"3.6.0-alpha.0": false, "3.6.0-rc.0": false, "3.6.0-rc.5": false, "3.6.0": true, "3.6.4": true, "3.7.0": true, "4.0.0": true,
		"": false, "3.6": false, "x": false,
	} {
		if got := keepsDeletes(text); got != want {
			t.Errorf("%q keeps deletes: %t, want %t", text, got, want)
		}
	}
}
