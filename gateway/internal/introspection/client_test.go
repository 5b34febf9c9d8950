package introspection

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"pgregory.net/rapid"
)

func named(p access.Principal) *credential.Identity { return &credential.Identity{Principal: &p} }

// TestNamesOfPrincipals: principals of two issuers are two groups, even if their names are the same.
func TestNamesOfPrincipals(t *testing.T) {
	const idp = "https://idp.example.com"
	for _, c := range []struct {
		of           *credential.Identity
		text, client string
	}{
		{nil, "anonymous", "unknown"},
		{named(*access.Nobody()), "anonymous", "unknown"},
		{named(access.Principal{Mechanism: access.Token, Name: "anonymous"}), "anonymous (token)", "unknown"},
		{named(access.Principal{Mechanism: access.JWT, Issuer: idp, Name: "ann"}), "ann (https://idp.example.com)", "unknown"},
		{named(access.Principal{Mechanism: access.JWT, Issuer: idp, Name: "ann", Claims: map[string]any{"azp": "shop"}}), "ann (https://idp.example.com)", "shop (https://idp.example.com)"},
		{named(access.Principal{Mechanism: access.Certificate, Issuer: "CN=ca", Name: "db-1"}), "db-1 (CN=ca)", "unknown"},
	} {
		if got := clientOf("", c.of); got.Text() != c.text || got.ClientText() != c.client {
			t.Errorf("%q and %q, want %q and %q", got.Text(), got.ClientText(), c.text, c.client)
		}
	}
}

// TestClientsAreBounded: whatever a client says, little of it is kept, as UTF-8.
func TestClientsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			return strings.Repeat(string(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, name)), rapid.IntRange(0, 100).Draw(t, "times"))
		}
		who := access.Principal{Mechanism: access.JWT, Issuer: text("issuer"), Name: text("name"), Claims: map[string]any{"azp": text("client")}}
		c := clientOf(text("agent"), named(who))
		for _, kept := range []string{c.UserAgent(), c.Issuer, c.Name, c.ClientID} {
			if len(kept) > principalKept || !utf8.ValidString(kept) {
				t.Fatalf("%d bytes: %q", len(kept), kept)
			}
		}
		if len(c.UserAgent()) > agentKept {
			t.Fatalf("a user agent of %d bytes", len(c.UserAgent()))
		}
	})
}

// TestClientsAreShared: streams of one client share an entry, which is forgotten with the last of
// them.
func TestClientsAreShared(t *testing.T) {
	all := New(slog.New(slog.DiscardHandler))
	from := netip.MustParseAddrPort("192.0.2.1:80")
	enter := func(agent, name string) Identity {
		return all.Enter(from, agent, named(access.Principal{Mechanism: access.Token, Name: name}))
	}
	streams := []Identity{enter("shop/1", "ann"), enter("shop/1", "ann"), enter("shop/2", "ann"), enter("shop/1", "bob"), all.Enter(from, "", nil)}
	if n := all.Clients.Keys(); n != 3 {
		t.Errorf("%d clients, want 3", n)
	}
	if c := all.Client(streams[3]); c.UserAgent() != "shop/1" || c.Name != "bob" {
		t.Errorf("%q of %q", c.UserAgent(), c.Name)
	}
	for _, one := range streams {
		all.RecordEnd(one, Subscriber{}, LeftByItself)
	}
	if left, _ := all.Departures(""); all.Clients.Keys() != 0 || left[0].Principal != (Principal{}) || left[1].Principal.Name != "bob" {
		t.Errorf("%d clients are remembered; left: %+v", all.Clients.Keys(), left)
	}
}
