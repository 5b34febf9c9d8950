package consul

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// follower merges the events of a connection into one order: those of the watch,
// which may start in the past, and those of lists, which never do.
//
// Owned by the goroutine that runs Watch.
type follower struct {
	// Static after construction.
	source *Source
	conn   *connection
	at     string // the epoch that the watch had
	sink   stream.Sink

	merge    *adapter.Merge
	objects  map[string]object   // the objects of the merge, without unneeded fields
	dead     map[string]struct{} // uids that the watch still reports, but that are gone
	named    bool                // the server names its cluster
	live     bool                // the snapshot was committed: objects is the checkpoint's
	listing  bool                // a list is being read
	again    bool                // and another one is wanted after it
	heard    bool                // the watch has sent something
	unheard  bool                // it had not when the list was requested
	audit    *audit              // under way; nil: none
	relist   *time.Timer
	auditing *time.Timer     // until the audit is judged
	ailing   [callers]string // why the server cannot answer
	ailment  string          // the reason that was reported to the sink
}

func newFollower(s *Source, c *connection, at string, sink stream.Sink) *follower {
	f := &follower{
		source: s, conn: c, at: at, sink: sink,
		merge: adapter.NewMerge(), objects: map[string]object{}, dead: map[string]struct{}{},
		relist: time.NewTimer(s.config.untilRelist()), auditing: time.NewTimer(time.Hour),
	}
	f.merge.CountAt(sink)
	return f
}

// run follows the connection to its end.
func (f *follower) run() error {
	defer f.relist.Stop()
	defer f.auditing.Stop()
	f.auditing.Stop()
	f.list()
	for {
		if err := f.step(); err != nil {
			return err
		}
		if f.conn.ctx.Err() != nil {
			return context.Cause(f.conn.ctx)
		}
	}
}

func (f *follower) step() error {
	select {
	case <-f.conn.ctx.Done():
		return context.Cause(f.conn.ctx)
	case e := <-f.conn.events:
		return f.event(e)
	case l := <-f.conn.lists:
		return f.listed(l)
	case h := <-f.conn.health:
		return f.report(h)
	case <-f.relist.C:
		f.list()
	case <-f.auditing.C:
		return f.judge()
	}
	return nil
}

// list starts a list; if one is being read, after that.
func (f *follower) list() {
	f.again = f.listing
	if f.listing {
		return
	}
	f.listing = true
	if f.live {
		f.audit = newAudit(f.source.checkpoint.revision)
	}
	f.conn.begin(!f.live)
}

// report records whether the server can answer each of its callers. While it
// cannot, the source does not know whether its state is current.
func (f *follower) report(h health) error {
	f.ailing[h.caller] = h.why
	why := cmp.Or(f.ailing[:]...)
	if why == f.ailment {
		return nil
	}
	f.ailment = why
	if why == "" {
		return f.sink.Status(stream.InSync, "")
	}
	return f.sink.Status(stream.Stale, why)
}

// untilRelist is different for each replica and each time.
func (c *Config) untilRelist() time.Duration {
	return c.ListInterval*4/5 + rand.N(c.ListInterval*2/5)
}
