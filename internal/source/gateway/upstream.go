package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

const (
	// maxRetryWait bounds the wait that an upstream may request.
	maxRetryWait = 5 * time.Minute
	// sayWaitAfter is the shortest wait that is reported to subscribers.
	sayWaitAfter = 5 * time.Second
)

// Upstream is another gateway. The sources of its watches share its connections.
//
// Source may be called by any goroutine, and each source be watched by one.
type Upstream struct {
	// Static after construction.
	config Config
	client *http.Client

	mu          sync.Mutex // guards the following fields, and those of connections
	connections []*connection
	sources     int           // that were made and not closed
	newest      time.Time     // when the last of them was made
	retry       time.Duration // last value of the field retry
	notBefore   time.Time     // the earliest time of the next request
}

// New returns the gateway at a URL. It connects when one of its sources is
// watched. The error reports an invalid configuration.
func New(c Config) (*Upstream, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Upstream{config: c, client: c.client()}, nil
}

// Source returns the source of the part of a watch that a definition selects, by the
// name of the watch at the gateway; nil: all of it. The gateway itself narrows the
// watch. It knows where labels are, whatever the definition says about that.
func (u *Upstream) Source(watch string, d *view.Definition) (*Source, error) {
	if err := stream.CheckWatchName(watch); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	s := &Source{upstream: u, watch: watch}
	if d != nil {
		p := d.Params()
		s.view = client.View{Prefix: p.Prefix, Keys: d.Keys(), Labels: p.Labels, Filter: p.Filter, Fields: p.Fields}
	}
	if !utf8.ValidString(s.view.Prefix) {
		return nil, fmt.Errorf("gateway: %w", &stream.InvalidError{What: "prefix", Got: s.view.Prefix, Want: "UTF-8"})
	}
	s.query = len(queryOf(s).Encode())
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sources, u.newest = u.sources+1, time.Now()
	return s, nil
}

// wait waits until the time that the upstream requested.
func (u *Upstream) wait(ctx context.Context, r *reader) error {
	u.mu.Lock()
	until := u.notBefore
	u.mu.Unlock()
	if time.Until(until) > sayWaitAfter {
		reason := "it wants to be left alone until " + until.UTC().Format(time.RFC3339)
		if err := r.Report(stream.Stale, reason); err != nil {
			return err
		}
	}
	return adapter.PauseUntil(ctx, until)
}

// join adds a member to a connection that has room, or to a new one.
func (u *Upstream) join(m *member) *connection {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := slices.IndexFunc(u.connections, func(c *connection) bool { return c.takes(m) })
	if at >= 0 {
		c := u.connections[at]
		c.add(m)
		return c
	}
	c := newConnection(u, m)
	u.connections = append(u.connections, c)
	go c.run()
	return c
}

// completeLocked reports whether no more members can join. Sources are made
// one after the other, each to be watched immediately. u.mu is held.
func (u *Upstream) completeLocked() bool {
	joined := 0
	for _, c := range u.connections {
		joined += len(c.members)
	}
	return joined == u.sources && time.Since(u.newest) >= gatherFor
}

// forgetLocked removes a connection that is over. u.mu is held.
func (u *Upstream) forgetLocked(c *connection) {
	u.connections = slices.DeleteFunc(u.connections, func(o *connection) bool { return o == c })
}
