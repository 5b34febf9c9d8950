package config

import (
	"crypto/tls"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access"
)

// problems returns what Validate reports, by the field.
func problems(validate func(func(any, string))) map[any]string {
	found := map[any]string{}
	validate(func(field any, problem string) { found[field] = problem })
	return found
}

func TestSectionIsValidated(t *testing.T) {
	var s Auth
	if found := problems(s.Validate); len(found) != 0 {
		t.Errorf("an empty section: %v", found)
	}
	s.Keys = []Key{{access.SealKey{1}}, {access.SealKey{2}}, {access.SealKey{1}}, {}, {}} // those of files with errors are empty
	s.JWT = []Issuer{{Issuer: "a"}, {Issuer: "b"}, {}, {}, {Issuer: "a"}}
	s.Tickets.TTL = longestTicket + 1
	found := problems(s.Validate)
	for field, want := range map[any]string{&s.Keys: "a key is given twice", &s.JWT: "entries 1 and 5", &s.Tickets.TTL: "at most 10m"} {
		if !strings.Contains(found[field], want) {
			t.Errorf("%q, want %q", found[field], want)
		}
	}
	s.Keys, s.JWT, s.Tickets.TTL = s.Keys[:2], s.JWT[:2], longestTicket
	if found := problems(s.Validate); len(found) != 0 {
		t.Errorf("nothing twice: %v", found)
	}
	if longestTicket != 10*time.Minute {
		t.Errorf("the message says 10m, the limit is %v", longestTicket)
	}
}

func TestIssuerIsValidated(t *testing.T) {
	for name, c := range map[string]struct {
		issuer  Issuer
		invalid bool
	}{
		"usual":                    {Issuer{Issuer: "https://a", Algorithms: []string{"ES256"}}, false},
		"with tls":                 {Issuer{Issuer: "https://a", Algorithms: []string{"ES256"}, TLS: &tls.Config{}}, false},
		"algorithms are not given": {Issuer{Issuer: "https://a"}, false}, // which is reported as missing
		"no algorithms":            {Issuer{Issuer: "https://a", Algorithms: []string{}}, true},
		"tls without https":        {Issuer{Issuer: "http://localhost", TLS: &tls.Config{}}, true},
		"tls with keys of a file":  {Issuer{Issuer: "https://a", Keys: KeySet("{}"), TLS: &tls.Config{}}, true},
	} {
		if found := problems(c.issuer.Validate); (len(found) != 0) != c.invalid {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestFiles(t *testing.T) {
	const hash = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"
	key := access.NewSealKey()
	for name, c := range map[string]struct {
		read func() error
		want string
	}{
		"a key":                     {func() error { return new(Key).ReadFile("f", []byte(key), 0o440) }, ""},
		"a key that others read":    {func() error { return new(Key).ReadFile("f", []byte(key), 0o444) }, "others can read the key: the mode of the file is 0444"},
		"no key":                    {func() error { return new(Key).ReadFile("f", []byte("hunter2"), 0o400) }, "the file holds no key"},
		"tokens":                    {func() error { return new(Tokens).ReadFile("f", []byte("ci "+hash), 0o644) }, ""},
		"tokens that others change": {func() error { return new(Tokens).ReadFile("f", []byte("ci "+hash), 0o646) }, "others can add tokens"},
		"no tokens":                 {func() error { return new(Tokens).ReadFile("f", []byte("\nci hunter2"), 0o400) }, "f:2:4: want sha256:"},
		"no key set":                {func() error { return new(KeySet).ReadFile("f", []byte("hunter2"), 0) }, "not JSON"},
	} {
		err := c.read()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	var tokens Tokens
	if err := tokens.ReadFile("f", []byte("ci "+hash+" a"), fs.FileMode(0)); err != nil || tokens.Lookup(access.HashOfToken("test")) == nil {
		t.Errorf("got %+v, %v", tokens, err)
	}
}
