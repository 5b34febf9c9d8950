package conversation

import (
	"slices"

	"github.com/watchtide/watchtide/gateway/internal/subscribers"
)

// Names returns the names of its watches.
func (c *Conversation) Names() []string { return namesOf(c.watches) }

// Followed returns its watches, and which parts of them it follows.
func (c *Conversation) Followed() []subscribers.Followed {
	out := make([]subscribers.Followed, len(c.watches))
	for i := range c.watches {
		out[i] = c.watches[i].followed()
	}
	return out
}

// Describe returns the stream's entry in the list, without its identity.
func (c *Conversation) Describe(d subscribers.Delivered) subscribers.Subscriber {
	out := subscribers.Subscriber{Transport: c.Transport(), Encoding: subscribers.EncodingName(c.Gzip)}
	out.Count(d)
	for i := range c.Follows {
		out.Follow(c.watches[i].followed(), c.Follows[i].Sub.Progress())
	}
	return out
}

// Lag returns how many changes of its watches the stream has not been sent yet.
func (c *Conversation) Lag() (lag uint64) {
	for i := range c.Follows {
		lag += c.Follows[i].Sub.Progress().Lag()
	}
	return lag
}

// Wanted reports whether a request for the streams of a watch, or of all, includes
// this one.
func (c *Conversation) Wanted(watch string) bool {
	return watch == "" || slices.ContainsFunc(c.watches, func(w Choice) bool { return w.Name == watch })
}
