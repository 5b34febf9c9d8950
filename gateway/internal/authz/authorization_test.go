package authz

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/stream"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// holder returns somebody whose credential lasts so long; 0: for ever.
func holder(name, session string, lasts time.Duration) *credential.Identity {
	p := &access.Principal{Mechanism: access.JWT, Issuer: "i", Name: name, ID: session}
	if lasts != 0 {
		p.Expires = time.Now().Add(lasts)
	}
	return &credential.Identity{Principal: p}
}

// The goodbye and the moment at which a stream is cut off lie before the end of the
// credential, however long it lasts.
func TestGoodbyeIsBeforeTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lasts := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(24*time.Hour)).Draw(t, "lasts"))
		now := time.Now()
		who := holder("ann", "", time.Hour)
		who.Expires = now.Add(lasts)
		p := &Authorization{}
		p.validity.Store(validityOf(who, now))
		end := now.Add(max(lasts, 0))
		leaves, cut := p.EndsAt(), p.CutAt(2*time.Second)
		switch {
		case leaves.After(end) || cut.After(end):
			t.Errorf("goodbye at %s and cut off at %s, the end is %s", leaves, cut, end)
		case leaves.Before(now) || leaves.Before(end.Add(-farewell)):
			t.Errorf("goodbye at %s, more than 30 s before %s or in the past", leaves, end)
		case lasts > 0 && leaves.Sub(now) < lasts/2:
			t.Errorf("goodbye %s after the beginning, want at least half of %s", leaves.Sub(now), lasts)
		case cut.Before(leaves):
			t.Errorf("cut off at %s before the goodbye at %s", cut, leaves)
		case p.ReasonToEnd(leaves.Add(-1)) != "" || p.ReasonToEnd(leaves) != stream.GoodbyeTokenExpired:
			t.Errorf("reasons %q and %q", p.ReasonToEnd(leaves.Add(-1)), p.ReasonToEnd(leaves))
		}
	})
}

func TestNilAuthorizationLasts(t *testing.T) {
	var p *Authorization
	if p.ReasonToEnd(time.Now()) != "" || !p.EndsAt().IsZero() || !p.CutAt(time.Second).IsZero() || p.Ended() != nil || p.ID() != "" {
		t.Error("the authorization of nobody ends")
	}
	if NewTable().Enter(nil) != nil {
		t.Error("nobody has an authorization")
	}
}

// Whoever waits for the end of an authorization learns of it, whether it waits before or after.
func TestEndIsNoticed(t *testing.T) {
	table := NewTable()
	before := table.Enter(holder("ann", "", 0))
	defer table.Leave(before)
	ended, notified := before.Ended(), 0
	before.Notify(func() { notified++ })
	table.Revoke("subject/i/ann")
	table.Revoke("subject/i/ann")
	<-ended
	if notified != 1 {
		t.Errorf("notified %d times, want once", notified)
	}
	<-before.Ended()
	before.Notify(func() { notified++ })
	if notified != 2 {
		t.Error("who asks after the end is not notified")
	}
	if got := before.ReasonToEnd(time.Now()); got != stream.GoodbyeRevoked {
		t.Errorf("reason %q", got)
	}
}

// What revokes the first credential of a stream and what revokes the newest one both end
// it; what revokes one in between does not.
func TestKeysOfRenewedAuthorization(t *testing.T) {
	for _, c := range []struct {
		key  string
		ends bool
	}{{"session/first", true}, {"session/second", false}, {"session/third", true}, {"subject/i/ann", true}, {"subject/i/bob", false}} {
		table := NewTable()
		p := table.Enter(holder("ann", "first", time.Hour))
		for _, session := range []string{"second", "third"} {
			if err := table.Renew(p.ID(), holder("ann", session, time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		table.Revoke(c.key)
		if got := p.ReasonToEnd(time.Now()) != ""; got != c.ends {
			t.Errorf("%s: ended %t, want %t", c.key, got, c.ends)
		}
		table.Leave(p)
		if len(table.open)+len(table.keyed) != 0 {
			t.Errorf("%s: %d authorizations and %d keys are left", c.key, len(table.open), len(table.keyed))
		}
	}
}

// A renewal neither shortens an authorization nor lets it go on after it has ended.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewTable()
		p := table.Enter(holder("ann", "", time.Hour))
		before := p.EndsAt()
		if err := table.Renew(p.ID(), holder("ann", "", time.Minute)); err != nil || p.EndsAt() != before {
			t.Errorf("%v, ends at %s, want %s", err, p.EndsAt(), before)
		}
		if err := table.Renew(p.ID(), holder("ann", "", 2*time.Hour)); err != nil || !p.EndsAt().After(before) {
			t.Errorf("%v, ends at %s, want an hour later than %s", err, p.EndsAt(), before)
		}
		for _, lasts := range []time.Duration{0, time.Hour} {
			if err := table.Renew(p.ID(), holder("ann", "", lasts)); err != nil || !p.EndsAt().IsZero() {
				t.Errorf("%v, ends at %s, want never", err, p.EndsAt())
			}
		}
		ticket := holder("ann", "", time.Hour)
		ticket.Via = credential.ViaTicket
		if err := table.Renew(p.ID(), ticket); err != ErrTicket {
			t.Errorf("with a ticket: %v", err)
		}
		if err := table.Renew(p.ID(), holder("bob", "", time.Hour)); err != ErrNotYours {
			t.Errorf("by another principal: %v", err)
		}
		table.Revoke("subject/i/ann")
		if err := table.Renew(p.ID(), holder("ann", "", time.Hour)); err != ErrUnknown {
			t.Errorf("after the end: %v", err)
		}
		table.Leave(p)
		if err := table.Renew(p.ID(), holder("ann", "", time.Hour)); err != ErrUnknown {
			t.Errorf("after it has left: %v", err)
		}
	})
}

// TestTokenGetsAnEnd: streams of a token that gets an end, or an earlier one, come back for what is
// left of it. Those of a token whose end goes away, or is later, go on.
func TestTokenGetsAnEnd(t *testing.T) {
	line := func(end string) *credential.Authenticator {
		hash := access.HashOfToken("a-token-of-the-test")
		table, err := access.ParseTokens([]byte("ci sha256:" + hex.EncodeToString(hash[:]) + " " + end))
		if err != nil {
			t.Fatal(err)
		}
		a, err := credential.New(credential.Config{Tokens: table})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	const never, soon, late = "", "expires=2999-01-01T00:00:00Z", "expires=3000-01-01T00:00:00Z"
	for _, test := range []struct {
		before, now string
		want        stream.GoodbyeReason
	}{
		{never, never, ""}, {never, soon, stream.GoodbyeWatchReplaced}, {late, soon, stream.GoodbyeWatchReplaced},
		{soon, soon, ""}, {soon, late, ""}, {soon, never, ""},
	} {
		request := httptest.NewRequest(http.MethodGet, "/v1/events", http.NoBody)
		request.RemoteAddr = "127.0.0.1:4711"
		request.Header.Set("Authorization", "Bearer a-token-of-the-test")
		who, err := line(test.before).Identify(request)
		if err != nil {
			t.Fatal(err)
		}
		table := NewTable()
		p := table.Enter(who)
		table.Reevaluate(Evaluator{Credentials: line(test.now)})
		if got := p.ReasonToEnd(time.Now()); got != test.want {
			t.Errorf("%q instead of %q: goodbye %q, want %q", test.now, test.before, got, test.want)
		}
		table.Leave(p)
	}
}

// Passes that are entered, renewed, revoked, evaluated and left at the same time leave nothing
// behind.
func TestTableIsEmptyAfterAll(t *testing.T) {
	table := NewTable()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				p := table.Enter(holder("ann", "s", time.Hour))
				p.Notify(func() {})
				_ = table.Renew(p.ID(), holder("ann", "t", time.Hour)) // it may have been revoked
				table.Leave(p)
			}
		})
		all.Go(func() {
			for range 50 {
				table.Revoke("session/s")
				table.Reevaluate(Evaluator{})
			}
		})
	}
	all.Wait()
	if table.Count()+len(table.keyed) != 0 {
		t.Errorf("%d authorizations and %d keys are left", table.Count(), len(table.keyed))
	}
}
