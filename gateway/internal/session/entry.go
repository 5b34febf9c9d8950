package session

import (
	"slices"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
)

// Names returns the names of its watches.
func (c *Session) Names() []string { return namesOf(c.watches) }

// Followed returns its watches, and which parts of them it follows.
func (c *Session) Followed() []introspection.Followed {
	out := make([]introspection.Followed, len(c.watches))
	for i := range c.watches {
		out[i] = c.watches[i].followed()
	}
	return out
}

// Report adds what the stream follows to a slice, and returns its place there.
func (c *Session) Report(to *introspection.Slice) (first, end int32) {
	first, end = to.Follow()
	for i := range c.watches {
		_, end = to.Follow(c.watches[i].followed())
	}
	return first, end
}

// Describe returns the stream's entry in the list, without its identity.
func (c *Session) Describe(d introspection.Delivered) introspection.Subscriber {
	out := introspection.Subscriber{Transport: c.Transport(), Encoding: introspection.EncodingName(c.Gzip)}
	out.Count(d)
	for i := range c.Follows {
		out.Follow(c.watches[i].followed(), c.Follows[i].Sub.Progress())
	}
	return out
}

// Lag returns how many changes of its watches the stream has not been sent yet.
func (c *Session) Lag() (lag uint64) {
	for i := range c.Follows {
		lag += c.Follows[i].Sub.Progress().Lag()
	}
	return lag
}

// AddLags adds the lag of each of its watches.
func (c *Session) AddLags(l introspection.WatchLags) {
	for i := range c.Follows {
		l.Add(c.watches[i].Name, c.Follows[i].Sub.Progress())
	}
}

// Wanted reports whether a request for the streams of a watch, or of all, includes
// this one.
func (c *Session) Wanted(watch string) bool {
	return watch == "" || slices.ContainsFunc(c.watches, func(w Choice) bool { return w.Name == watch })
}
