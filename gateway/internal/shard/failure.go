package shard

import (
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/session"
)

// fail ends all streams of a shard that failed, frees everything they held, and lets
// the shard start again. Streams that have arrived but were not welcomed yet
// continue.
//
// Whatever the failure left half done must not stop it: each step is taken regardless
// of the outcome of the others.
func (s *shard) fail(why error) {
	s.deps.Log.Error("a shard of the pump failed: its streams end, and it begins again", "streams", s.table.count, "error", why)
	for at := range s.table.slots {
		if s.table.slots[at].kind != vacantSlot {
			s.attempt(func() { s.abandon(int32(at)) })
		}
	}
	for _, l := range s.unshared {
		s.attempt(l.Release)
		s.attempt(l.out.detach)
	}
	for _, g := range s.groups {
		if g != nil {
			s.attempt(g.Release)
		}
	}
	for _, b := range s.wakers {
		b.stop()
	}
	// Notices for connections that are closed by now must not match later ones.
	vacated := s.table
	vacated.clear()
	s.carried = newCarried(s.p)
	s.table = vacated
}

// attempt takes one step after a failure.
func (s *shard) attempt(step func()) {
	err := problem.Recovered(func() error { step(); return nil })
	if err != nil {
		s.deps.Log.Error("a stream of a shard that failed could not be ended in full", "error", err)
	}
}

// abandon closes one connection, and releases its admission. The references of
// its session are freed elsewhere: it may be a group's.
func (s *shard) abandon(at int32) {
	c := &s.table.slots[at]
	s.sockets.Close(c.handle)
	s.deps.Leave(c.ref, s.authorizations[at])
	var of *session.Session
	if l := s.unshared[at]; l != nil {
		of = &l.Session
	} else {
		of = &s.groups[c.group].Session
	}
	s.deps.Metrics.StreamClosed(of.Transport())
	who := s.table.identity(at)
	s.deps.Subscribers.RecordEnd(who, introspection.Subscriber{Transport: of.Transport(), Encoding: of.Coding.String(), Watches: of.Names()}, introspection.LeftByAccident)
}
