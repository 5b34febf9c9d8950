package session

import (
	"slices"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
)

// Names returns the names of its watches.
func (s *Session) Names() []string { return namesOf(s.watches) }

// Followed returns its watches, and which parts of them it follows.
func (s *Session) Followed() []introspection.Followed {
	out := make([]introspection.Followed, len(s.watches))
	for i := range s.watches {
		out[i] = s.watches[i].followed()
	}
	return out
}

// Report adds what the stream follows to a slice, and returns its place there.
func (s *Session) Report(to *introspection.Slice) (first, end int32) {
	first, end = to.Follow()
	for i := range s.watches {
		_, end = to.Follow(s.watches[i].followed())
	}
	return first, end
}

// Describe returns the stream's entry in the list, without its identity.
func (s *Session) Describe(d introspection.Delivered) introspection.Subscriber {
	out := introspection.Subscriber{Transport: s.Transport(), Encoding: s.Coding.String()}
	out.Count(d)
	for i := range s.Follows {
		out.Follow(s.watches[i].followed(), s.Follows[i].Sub.Progress())
	}
	return out
}

// Lag returns how many changes of its watches the stream has not been sent yet.
func (s *Session) Lag() (lag uint64) {
	for i := range s.Follows {
		lag += s.Follows[i].Sub.Progress().Lag()
	}
	return lag
}

// AddLags adds the lag of each of its watches.
func (s *Session) AddLags(l introspection.WatchLags) {
	for i := range s.Follows {
		l.Add(s.watches[i].Name, s.Follows[i].Sub.Progress())
	}
}

// Wanted reports whether a request for the streams of a watch, or of all, includes
// this one.
func (s *Session) Wanted(watch string) bool {
	return watch == "" || slices.ContainsFunc(s.watches, func(w Choice) bool { return w.Name == watch })
}
