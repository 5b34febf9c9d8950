package watch

import (
	"maps"
	"sync/atomic"
)

// Stats are the counters of a watch since the start of the process.
type Stats struct {
	// Reconnects counts upstream connections that ended, by reason: ended,
	// error, stalled, invalid, order, behind, unresumable, memory.
	Reconnects map[string]uint64
	// Resyncs counts complete snapshots taken over, by reason: initial,
	// reconnect, epoch_changed. It is counted after the events of the snapshot.
	Resyncs map[string]uint64
	// Events counts what came from the upstream, by type: upsert, delete, bookmark;
	// and duplicate, for what was already known and dropped. A view has unmatchable, for
	// what its filter fails on.
	Events map[string]uint64
	// DigestMismatches counts how often the newest state had another digest than the upstream's; see stream.Holding.
	DigestMismatches uint64
}

// add adds the counters of another watch.
func (s *Stats) add(o Stats) {
	s.DigestMismatches += o.DigestMismatches
	for _, pair := range [][2]map[string]uint64{{s.Reconnects, o.Reconnects}, {s.Resyncs, o.Resyncs}, {s.Events, o.Events}} {
		for name, n := range pair[1] {
			pair[0][name] += n
		}
	}
}

// counters is a fixed set of named counters: written by ingest, read by all.
type counters map[string]*atomic.Uint64

func newCounters(names ...string) counters {
	c := make(counters, len(names))
	for _, n := range names {
		c[n] = new(atomic.Uint64)
	}
	return c
}

func (c counters) add(name string, n int) { c[name].Add(uint64(n)) }

func (c counters) values() map[string]uint64 {
	out := make(map[string]uint64, len(c))
	for n, v := range maps.All(c) {
		out[n] = v.Load()
	}
	return out
}

// watchCounters are the counters of one watch.
type watchCounters struct {
	reconnects, resyncs, events counters
	changes, mismatches         *atomic.Uint64
}

func (c watchCounters) stats() Stats {
	return Stats{
		Reconnects: c.reconnects.values(), Resyncs: c.resyncs.values(), Events: c.events.values(), DigestMismatches: c.mismatches.Load(),
	}
}

func newWatchCounters() watchCounters {
	return watchCounters{
		reconnects: newCounters("ended", "error", "stalled", "invalid", "order", "behind", "unresumable", "memory"),
		resyncs:    newCounters("initial", "reconnect", "epoch_changed"),
		events:     newCounters("upsert", "delete", "bookmark", "duplicate"),
		changes:    new(atomic.Uint64), mismatches: new(atomic.Uint64),
	}
}
