package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// check checks the histories of all connections, after all have read everything, and
// completes the row.
func (s *scene) check(ctx context.Context) error {
	defer s.hangUp()
	s.history.Truth = s.upstream.truth()
	s.narrow.Truth = streamtest.TruthOfView(s.history.Truth, s.view)
	fresh := map[string][]streamtest.Freshness{replica: freshness(s.connections(), s.began)}
	errs := []error{s.upstream.check(ctx), s.allInSync()}
	for _, h := range []*streamtest.History{s.history, s.narrow} {
		h.Heartbeat += 2 * s.delayed // of the sender, and of the receiver
		h.Freshness = fresh
		errs = append(errs, streamtest.CheckAll(h))
	}
	for _, c := range s.connections() {
		errs = append(errs, c.CheckBytes())
	}
	known := newKnowledge(s.upstream)
	for _, c := range s.connections() {
		s.row.Events += changes(c)
		spurious := known.spurious(c)
		s.row.Spurious += len(spurious)
		errs = append(errs, spurious...)
	}
	s.row.Snapshots = sum(s.watch.Stats().Resyncs) - sum(s.before.Resyncs)
	if err := errors.Join(errs...); err != nil {
		return errors.Join(shortened(err), s.state(), s.told(err))
	}
	return nil
}

// told returns the statuses of the first connection named in an error, and those of
// all others.
func (s *scene) told(err error) error {
	var named string
	others := map[string]bool{}
	for _, c := range s.connections() {
		if named == "" && strings.Contains(err.Error(), c.String()) {
			named = fmt.Sprintf("%v, last read at %s, got the statuses:%s", c, clock(c.Read), strings.Join(statuses(c), ""))
			continue
		}
		for _, status := range statuses(c) {
			_, status, _ = strings.Cut(status, ": ")
			others[status] = true
		}
	}
	if named == "" {
		return nil
	}
	return fmt.Errorf("%s\nothers:\n\t%s", named, strings.Join(slices.Sorted(maps.Keys(others)), "\n\t"))
}

// statuses returns the statuses of a connection, one per line.
func statuses(c *streamtest.Connection) (lines []string) {
	for _, f := range c.Flushes {
		for _, e := range f.Events {
			if e.Type == stream.StatusChange {
				lines = append(lines, fmt.Sprintf("\n\tat %s: since %s %v (%s)", clock(f.At), clock(e.Since), e.State, e.Reason))
			}
		}
	}
	return lines
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// shortened is an error cut to its first part, which is enough.
func shortened(err error) error {
	const enough = 20_000
	if text := err.Error(); len(text) > enough {
		return fmt.Errorf("%s… (%d bytes more)", text[:enough], len(text)-enough)
	}
	return err
}

func (s *scene) hangUp() {
	for _, sub := range s.subscribers {
		sub.hangUp()
	}
	s.witness.Close()
}

// allInSync fails if the last status of a connected subscriber is that the watch is
// not in sync.
func (s *scene) allInSync() error {
	for _, c := range s.connections() {
		if !c.Live() {
			continue
		}
		if told := lastTold(c); told.State != stream.InSync {
			return fmt.Errorf("%v: after recovery its last status is %v (%s): want in_sync", c, told.State, told.Reason)
		}
	}
	return nil
}

// lastTold is the last status of a subscriber; in sync, if none.
func lastTold(c *streamtest.Connection) stream.Event {
	told := stream.Event{State: stream.InSync}
	for _, f := range c.Flushes {
		for _, e := range f.Events {
			if e.Type == stream.StatusChange {
				told = e
			}
		}
	}
	return told
}

// changes counts the upserts and deletes of a connection.
func changes(c *streamtest.Connection) (n int) {
	for _, f := range c.Flushes {
		for _, e := range f.Events {
			if e.Type == stream.Upsert || e.Type == stream.Delete {
				n++
			}
		}
	}
	return n
}

// own reports whether a status is one of this subscriber, and not of the watch.
func own(e stream.Event) bool {
	return e.State == stream.CatchingUp
}

// freshness is when the watch reported that it was fresh, according to the statuses
// of all subscribers. Whether the watch reports it in time is checked during the
// fault; this serves to check that every subscriber gets the status.
func freshness(connections []*streamtest.Connection, began time.Time) []streamtest.Freshness {
	said := []streamtest.Freshness{{At: began, Fresh: true}}
	for _, c := range connections {
		for _, f := range c.Flushes {
			for _, e := range f.Events {
				if e.Type == stream.StatusChange && !own(e) {
					said = append(said, streamtest.Freshness{At: e.Since, Fresh: e.State == stream.InSync})
				}
			}
		}
	}
	slices.SortStableFunc(said, func(a, b streamtest.Freshness) int { return a.At.Compare(b.At) })
	return slices.CompactFunc(said, func(a, b streamtest.Freshness) bool { return a.Fresh == b.Fresh })
}
