package credential

import (
	"fmt"
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
