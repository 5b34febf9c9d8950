package introspection

import (
	"time"

	"github.com/watchtide/watchtide/stream/watch"
)

// entry is one watch or template of the configuration.
//
// Owned by the Recorder.
type entry struct {
	name     string
	tally    *Tally
	of       *watch.Watch    // nil: it is a template
	template *watch.Template // nil: it is a watch

	hour    *hour        // nil: it has none
	charged *watch.Watch // whose memory has the hour; nil: that of no watch
	why     string       // it has none
	retry   time.Time    // when it may have one

	changes uint64 // of the watch, at the last sample
	state   State
}

// replace makes the entry that of a watch, or of a template. After a reload it may be another one
// than before, which counts from zero, but the hour goes on.
func (e *entry) replace(w *watch.Watch, t *watch.Template) {
	if e.of != w || e.template != t {
		e.of, e.template, e.changes = w, t, 0
	}
}

// take reads what has happened since the last sample.
func (e *entry) take(c *counts, last time.Time, lags map[string]uint64) {
	e.tally.take(c)
	changes := uint64(0)
	if e.template != nil {
		changes, c.state = e.template.Changes(), Idle
		for _, w := range e.template.Watches() {
			c.state = max(c.state, stateOf(w, Missing, last))
			c.subscribers += uint64(w.Subscribers())
			c.lag = max(c.lag, lags[w.Name()])
		}
	} else {
		changes, c.state = e.of.Changes(), stateOf(e.of, e.state, last)
		c.subscribers, c.lag = uint64(e.of.Subscribers()), lags[e.name]
	}
	c.changes = changes - min(e.changes, changes)
	e.changes, e.state = changes, c.state
}
