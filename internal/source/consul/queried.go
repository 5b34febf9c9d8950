package consul

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// Queried follows a collection of the HTTP API. It is a [stream.Source]. It has no open connection
// except while Watch runs, which one goroutine at a time may call.
type Queried struct {
	// Static after construction.
	config Config

	// Owned by Watch.
	epochs    epochs
	served    map[string]version // what the sink has
	held      int64              // bytes of served
	committed uint64             // everything up to here was committed; 0: nothing
	filtered  bool               // the token may not read all of what was served
	broken    bool               // the sink has refused the order
	notBefore time.Time          // the server asked to wait
	continued string             // the epoch of what Continue has brought; empty: nothing, or it was compared
}

var (
	_ stream.Source            = (*Queried)(nil)
	_ stream.DeletesUnnumbered = (*Queried)(nil)
	_ stream.Continuing        = counted{}
)

// Open returns the source of a collection.
func Open(c Config) (stream.Source, error) {
	if c.collection() == Resource {
		return New(c)
	}
	q, err := NewQueried(c)
	switch {
	case err != nil:
		return nil, err
	case c.collection() == KV:
		return q, nil
	}
	return counted{q}, nil
}

// counted is a Queried of a collection whose resources have no revision at the upstream.
type counted struct{ *Queried }

// NewQueried returns a Queried; it connects when Watch is called. The error reports an invalid
// configuration. Whether the token can be read is checked later: its file may not exist yet.
func NewQueried(c Config) (*Queried, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.setDefaults()
	return &Queried{config: c, epochs: newEpochs(&c), served: map[string]version{}}, nil
}

// DeletesUnnumbered implements [stream.DeletesUnnumbered]: the index of the answer that lacks a resource
// is not that of its deletion.
func (s *Queried) DeletesUnnumbered() bool { return true }

// Continue implements [stream.Continuing].
func (s counted) Continue(from stream.Resume, resources iter.Seq[stream.Resource]) {
	s.forget()
	s.continued, s.committed = from.Epoch, from.Revision
	for r := range resources {
		s.serve(strings.Clone(r.Key), version{revision: r.Revision, sum: sumOf(r.Value)})
	}
}

// enter records which cluster answers, and at which epoch the watch is. What was served counts only if it was in
// its order.
func (s *Queried) enter(cluster, at string) {
	if s.epochs.enter(cluster, at) {
		s.forget()
	}
	if s.continued != "" && stream.UnnumberedName(s.continued) != stream.UnnumberedName(s.epochs.name()) {
		s.forget()
	}
	s.continued = ""
}

// Watch implements [stream.Source]. Consul cannot resume, so every connection begins with a snapshot.
func (s *Queried) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	if err := adapter.PauseUntil(ctx, s.notBefore); err != nil {
		return err
	}
	p := newPolling(ctx, s, resume.Epoch, sink)
	err := p.run()
	p.close(err)
	p.running.Wait()
	p.api.close()
	if errors.Is(err, stream.ErrBehind) || errors.Is(err, stream.ErrOrder) {
		s.broken = true
	}
	var no *refusal
	if errors.As(err, &no) && no.status == http.StatusTooManyRequests {
		s.notBefore = time.Now().Add(max(no.after, time.Second) + rand.N(time.Second))
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return s.config.refusedBy(err, p.api, p.api.query.right)
}

// changes are what differs between an answer and what the sink has.
type changes struct {
	upserts  []item
	deletes  []string
	revision uint64
	broken   string // why they are not of the same order; empty: they are
}

// compare compares an answer with what the sink has. index is that up to which the answer has
// everything.
func (s *Queried) compare(items []item, index uint64) (changes, error) {
	c := changes{revision: max(index, s.committed)}
	seen := make(map[string]struct{}, len(items))
	for n := range items {
		i := &items[n]
		if _, twice := seen[i.key]; twice {
			return c, fmt.Errorf("%w: key %.80q is there twice", stream.ErrInvalid, i.key)
		}
		seen[i.key] = struct{}{}
		s.place(i, &c)
	}
	for key := range s.served {
		if _, there := seen[key]; !there {
			c.deletes = append(c.deletes, key)
		}
	}
	slices.Sort(c.deletes)
	if c.broken == "" && s.committed > 0 && c.revision == s.committed && len(c.upserts)+len(c.deletes) > 0 {
		c.broken = fmt.Sprintf("index %d is not newer than %d, and the content is another", index, s.committed)
	}
	if c.broken == "" && s.broken {
		c.broken = "the revisions went back"
	}
	return c, nil
}

// place gives an item its revision, and adds it to the changes if it is one.
func (s *Queried) place(i *item, c *changes) {
	was, known := s.served[i.key]
	switch {
	case i.revision == 0 && known && was.sum == i.sum:
		i.revision = was.revision
	case i.revision == 0:
		i.revision = c.revision
		c.upserts = append(c.upserts, *i)
	case known && was == i.version:
	default:
		if i.revision <= s.committed {
			c.broken = fmt.Sprintf("key %.80q is at index %d, but not so when everything up to %d was served", i.key, i.revision, s.committed)
		}
		c.revision = max(c.revision, i.revision)
		c.upserts = append(c.upserts, *i)
	}
}

// doubt returns why what an answer lacks need not be deleted; empty: it is.
func (s *Queried) doubt(c *changes, a *answer) string {
	switch {
	case !a.filtered:
		return ""
	case len(a.items) == 0:
		return "the token may read nothing of it, or nothing is left of what it may read"
	case s.committed > 0 && !s.filtered && len(c.deletes) > 0:
		return fmt.Sprintf("the token may not read all of it any more, and %d that it could read are missing, such as %.80q", len(c.deletes), c.deletes[0])
	}
	return ""
}

// renew begins another order.
func (s *Queried) renew(items []item) {
	content := map[string]object{}
	for _, i := range items {
		content[i.key] = object{i.created, fmt.Sprintf("%d %x", i.version.revision, i.sum)}
	}
	s.epochs.renew(content)
	s.forget()
}

// forget records that the sink has nothing that counts.
func (s *Queried) forget() {
	clear(s.served)
	s.held = 0
	s.committed, s.broken, s.filtered = 0, false, false
}

// servedCost is what a resource that was served takes besides its key.
const servedCost = 128

func (s *Queried) serve(key string, v version) {
	if _, known := s.served[key]; !known {
		s.held += servedCost + int64(len(key))
	}
	s.served[key] = v
}

// keep records what the sink has.
func (s *Queried) keep(c *changes, filtered bool) {
	for _, key := range c.deletes {
		delete(s.served, key)
		s.held -= servedCost + int64(len(key))
	}
	for _, i := range c.upserts {
		s.serve(i.key, i.version)
	}
	s.committed, s.filtered = c.revision, filtered
}
