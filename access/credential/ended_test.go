package credential

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
)

// endedSession is a session of a principal that begins now, as if somebody had a copy of its cookie.
func endedSession(e *ended, name, id string, life time.Duration) *Identity {
	p := &access.Principal{Mechanism: access.Token, Name: name, ID: id, Expires: time.Now().Add(life)}
	return &Identity{Principal: p, begun: e.begin(p)}
}

// TestEndedSessionsStayEnded until they expire, however many others end.
func TestEndedSessionsStayEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnded()
		victim, other := endedSession(e, "victim", "v", sessionLife), endedSession(e, "other", "o", sessionLife)
		e.add(victim)
		mine := endedSession(e, "mallory", "first", sessionLife)
		for i := range 6_000 {
			e.add(endedSession(e, fmt.Sprint("mallory", i%2), fmt.Sprint("m", i), sessionLife))
			e.add(endedSession(e, "victim", fmt.Sprint("v", i), sessionLife))
		}
		if !e.has(victim) {
			t.Error("a copy of the cookie is good again")
		}
		if e.has(other) || e.has(mine) {
			t.Error("sessions of others have ended")
		}
		if e.count > 4*maxEndedOfOne {
			t.Errorf("%d sessions are remembered of three principals", e.count)
		}
		if again := endedSession(e, "victim", "again", sessionLife); e.has(again) {
			t.Error("a session that has begun since has ended")
		}
		time.Sleep(sessionLife + time.Second)
		e.add(endedSession(e, "later", "l", time.Minute))
		if len(e.of) != 1 || e.count != 1 {
			t.Errorf("%d principals are remembered, with %d sessions, after all have expired", len(e.of), e.count)
		}
	})
}

// TestManyEndedSessionsOfMany principals end those of everybody rather than be forgotten.
func TestManyEndedSessionsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnded()
		e.most = 1000
		victim := endedSession(e, "victim", "v", 30*24*time.Hour)
		e.add(victim)
		for i := range e.most + 1 {
			e.add(endedSession(e, fmt.Sprint("n", i), "x", time.Hour))
		}
		time.Sleep(29 * 24 * time.Hour)
		e.add(endedSession(e, "later", "l", time.Hour))
		if !e.has(victim) {
			t.Error("a copy of the cookie is good again")
		}
		if len(e.of) > 3 {
			t.Errorf("%d principals are remembered", len(e.of))
		}
		if again := endedSession(e, "victim", "again", time.Hour); e.has(again) {
			t.Error("a session that has begun since has ended")
		}
	})
}

// TestRenamedPrincipal does not get a session back that has ended.
func TestRenamedPrincipal(t *testing.T) {
	e := newEnded()
	p := &access.Principal{Mechanism: access.JWT, Issuer: "i", Name: "ann", ID: "s", Claims: map[string]any{"sub": "1"}, Expires: time.Now().Add(time.Hour)}
	e.add(&Identity{Principal: p})
	renamed := *p
	renamed.Name = "anna"
	if !e.has(&Identity{Principal: &renamed}) {
		t.Error("a copy of the cookie is good again")
	}
}

// TestKeptEndingsAreBounded: a principal that signs out without end leaves a bounded number of
// resources, and together they end all of its sessions.
func TestKeptEndingsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, kept, sessions := newEnded(), map[string]Ending{}, []*Identity{}
		for i := range 1_000 {
			time.Sleep(time.Millisecond)
			s := endedSession(e, "ann", fmt.Sprint(i), sessionLife)
			sessions = append(sessions, s)
			end := e.add(s)
			kept[end.Session] = end
			if !end.Until.IsZero() {
				kept[end.Whose] = end
			}
			for _, key := range end.Needless {
				delete(kept, key)
			}
			if n := len(kept); n > 2*maxEndedOfOne+2 {
				t.Fatalf("%d resources after %d sessions", n, i+1)
			}
		}
		until := kept["sessions/token/ann"].Until.UnixMilli()
		for _, s := range sessions {
			if _, ok := kept["session/"+s.ID]; !ok && s.begun > until {
				t.Fatalf("session %s is good after a restart", s.ID)
			}
		}
	})
}

// TestEndedByTime: what the watch of revocations says of all sessions of a principal ends those, but
// neither later ones nor its token.
func TestEndedByTime(t *testing.T) {
	revoked := &revocations{}
	r := newRig(t, func(c *Config) { c.Revocations = revoked })
	cookie := r.session(t, withBearer(r.ci))
	session := func() *http.Request { return newRequest("/", "Cookie", cookie.Name+"="+cookie.Value) }
	if got := r.who(t, session()); got != "token ci" {
		t.Fatal(got)
	}
	revoked.until = time.Now().Add(time.Second)
	if got := r.who(t, session()); got != "revoked" {
		t.Errorf("the session: %s", got)
	}
	if got := r.who(t, withBearer(r.ci)); got != "token ci" {
		t.Errorf("the token: %s", got)
	}
	cookie = r.session(t, withBearer(r.ci))
	if got := r.who(t, session()); got != "token ci" {
		t.Errorf("a session that has begun since: %s", got)
	}
	if r.EndSession(session()); len(revoked.kept) != 1 || revoked.kept[0].Whose != "sessions/token/ci" {
		t.Errorf("kept: %+v", revoked.kept)
	}
}
