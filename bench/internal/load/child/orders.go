package child

import (
	"slices"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
)

// Orders are a Loader's orders, in the form that net/rpc requires. Static after
// construction.
type Orders struct{ loop *loop }

// none is an empty argument: gob does not transmit empty structs.
type none = bool

// OpenOrder is for Open.
type OpenOrder struct {
	N       int
	Request load.Request
}

// New makes the Client.
func (s *Orders) New(o Options, _ *none) error {
	return s.loop.do(func(l *loop) (err error) {
		options := load.Options{
			Address: o.Address, Marker: o.Marker, Done: o.Done, Stamp: o.Stamp,
			EndIsDone: o.EndIsDone, IDs: o.IDs, Sample: o.Sample, InFlight: o.InFlight,
		}
		if o.Keep > 0 {
			options.OnBytes = l.keep(o.Keep)
		}
		l.client, err = load.New(options)
		return err
	})
}

// keep copies the bytes of connection 0, up to a limit.
func (l *loop) keep(most int) func(int, []byte) {
	return func(conn int, b []byte) {
		if conn == 0 {
			l.kept = append(l.kept, b[:min(len(b), most-len(l.kept))]...)
		}
	}
}

// Open is Client.Open.
func (s *Orders) Open(o OpenOrder, _ *none) error {
	return s.loop.do(func(l *loop) error { return l.client.Open(o.N, o.Request) })
}

// OpenEach is Client.OpenEach.
func (s *Orders) OpenEach(requests []load.Request, _ *none) error {
	return s.loop.do(func(l *loop) error { return l.client.OpenEach(requests) })
}

// Reopen is Client.Reopen.
func (s *Orders) Reopen(r load.Request, _ *none) error {
	return s.loop.do(func(l *loop) error { return l.client.Reopen(r) })
}

// Release releases all.
func (s *Orders) Release(none, *none) error {
	return s.loop.do(func(l *loop) error {
		for n := range l.client.Len() {
			l.client.Release(n)
		}
		return nil
	})
}

// HangupAll is Client.HangupAll.
func (s *Orders) HangupAll(none, *none) error {
	return s.loop.do(func(l *loop) error {
		l.client.HangupAll()
		return nil
	})
}

// Stats is Client.Stats.
func (s *Orders) Stats(_ none, out *load.Stats) error {
	return s.loop.do(func(l *loop) error {
		*out = l.client.Stats()
		return nil
	})
}

// Latency reads the histogram and empties it.
func (s *Orders) Latency(_ none, out *Latency) error {
	return s.loop.do(func(l *loop) error {
		h := l.client.Latency()
		*out = Latency{Count: h.Count(), P50: h.Quantile(0.5), P99: h.Quantile(0.99), Max: h.Max()}
		*h = load.Histogram{}
		return nil
	})
}

// Times looks at all connections that are done.
func (s *Orders) Times(_ none, out *Times) error {
	return s.loop.do(func(l *loop) error {
		var all []time.Duration
		for n := range l.client.Len() {
			if d := l.client.DoneAfter(n); d > 0 {
				all = append(all, d)
			}
		}
		slices.Sort(all)
		if out.Count = len(all); len(all) > 0 {
			out.Median, out.Max = all[len(all)/2], all[len(all)-1]
		}
		return nil
	})
}

// Kept returns the recorded bytes of connection 0.
func (s *Orders) Kept(_ none, out *[]byte) error {
	return s.loop.do(func(l *loop) error {
		*out = slices.Clone(l.kept)
		return nil
	})
}

// LastID is Client.LastID.
func (s *Orders) LastID(n int, out *string) error {
	return s.loop.do(func(l *loop) error {
		*out = l.client.LastID(n)
		return nil
	})
}

// Events is Client.Events of every connection.
func (s *Orders) Events(_ none, out *[]uint64) error {
	return s.loop.do(func(l *loop) error {
		for n := range l.client.Len() {
			*out = append(*out, l.client.Events(n))
		}
		return nil
	})
}
