package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// subscriber is one of the ten. Owned by its goroutine until that has ended.
type subscriber struct {
	// Static after construction.
	name    string
	habit   func(*subscriber, context.Context)
	slow    bool
	whole   *watch.Watch
	watch   func() (*watch.Watch, error) // opens the watch, or the view
	history *streamtest.History
	ids     *ids

	conn  *streamtest.Connection
	open  *watch.Watch     // of the connection
	last  *streamtest.Mark // its last id
	held  streamtest.State // its state when it hung up
	ahead uint64           // the head then
}

// subscribers returns the ten: the second one of each kind is of the view.
func subscribers(w *watch.Watch, whole, view part) []*subscriber {
	var out []*subscriber
	add := func(n int, name string, slow bool, habit func(*subscriber, context.Context)) {
		for i := range n {
			of := whole
			if i == 1 {
				of = view
			}
			out = append(out, &subscriber{
				name: fmt.Sprintf("%s %d", name, i+1), habit: habit, slow: slow, whole: w, watch: of.open, history: of.history, ids: of.ids,
			})
		}
	}
	add(3, "steady", false, (*subscriber).stay)
	add(3, "resuming", false, (*subscriber).reconnect)
	add(2, "slow", true, (*subscriber).dawdle)
	add(2, "fresh", false, (*subscriber).dropIn)
	return out
}

// run follows the subscriber's habit until ctx ends. Then it comes once more with
// its last id, and reads everything.
func (s *subscriber) run(ctx context.Context) {
	s.habit(s, ctx)
	s.hangUp()
	s.comeBack()
	s.readAll()
}

// readAll reads everything. A view may still have to take in what its watch has.
func (s *subscriber) readAll() {
	for deadline := time.Now().Add(slack); ; pause(context.Background(), look) {
		arrived := s.open.Snapshot().Revision() >= s.whole.Snapshot().Revision()
		s.conn.Drain()
		if arrived && lastTold(s.conn).State == stream.InSync || time.Now().After(deadline) {
			return
		}
	}
}

// stay reads at once.
func (s *subscriber) stay(ctx context.Context) {
	s.comeBack()
	s.conn.Run(ctx)
}

// reconnect is cut off after a while, often inside a flush, and reconnects with its
// last id, or with any other that was ever sent.
func (s *subscriber) reconnect(ctx context.Context) {
	for ctx.Err() == nil {
		if rand.IntN(3) > 0 || !s.comeFromAnywhere() {
			s.comeBack()
		}
		s.readFor(ctx, 20*time.Millisecond+rand.N(300*time.Millisecond))
		s.hangUp()
	}
}

// dropIn starts from nothing each time, and stays for a moment.
func (s *subscriber) dropIn(ctx context.Context) {
	for ctx.Err() == nil {
		s.last, s.held = nil, nil
		s.comeBack()
		s.readFor(ctx, 50*time.Millisecond+rand.N(400*time.Millisecond))
		s.hangUp()
	}
}

// dawdle reads a flush now and then.
func (s *subscriber) dawdle(ctx context.Context) {
	s.comeBack()
	for ctx.Err() == nil {
		s.conn.Step()
		pause(ctx, 20*time.Millisecond+rand.N(200*time.Millisecond))
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// readFor reads at once for a while, and every second time loses the rest of one
// more flush.
func (s *subscriber) readFor(ctx context.Context, d time.Duration) {
	if rand.IntN(2) > 0 {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		s.conn.Run(ctx)
		return
	}
	for deadline := time.Now().Add(d); ctx.Err() == nil && time.Now().Before(deadline); {
		s.conn.Drain()
		s.await(ctx, time.Until(deadline))
	}
	s.conn.CutAfter(rand.IntN(4))
}

// await waits for something to read.
func (s *subscriber) await(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.conn.Changed():
	case <-timer.C:
	}
}

// comeBack connects with the last id and the state held.
func (s *subscriber) comeBack() { s.dial(s.last, s.held, s.ahead) }

// comeFromAnywhere connects with a random id and the state held there; false if
// there is none.
func (s *subscriber) comeFromAnywhere() bool {
	m := s.ids.any()
	if m == nil {
		return false
	}
	s.dial(m, nil, 0)
	return true
}

func (s *subscriber) dial(from *streamtest.Mark, held streamtest.State, ahead uint64) {
	s.last = from
	w, err := s.watch()
	if err != nil {
		panic(err) // no limit is near
	}
	s.open = w
	s.conn = s.history.Connect(w, streamtest.Dial{
		Client: s.name, Replica: replica, Slow: s.slow, From: from, Begin: held, Ahead: ahead,
	})
}

// hangUp closes the connection, if there is one, and keeps its state.
func (s *subscriber) hangUp() {
	if s.conn == nil {
		return
	}
	marks := s.conn.Marks()
	if len(marks) > 0 {
		s.last = marks[len(marks)-1]
	}
	s.held, s.ahead = s.conn.State(), max(s.ahead, s.open.Snapshot().Revision())
	s.ids.add(marks)
	s.conn.Close()
	s.conn = nil
}

// ids are those that were sent. Safe for concurrent use.
type ids struct {
	mu    sync.Mutex
	marks []*streamtest.Mark
}

// remembered is how many ids are kept, at random: each holds a state.
const remembered = 300

func (k *ids) add(marks []*streamtest.Mark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range marks {
		if len(k.marks) >= remembered {
			k.marks[rand.IntN(len(k.marks))] = m
			continue
		}
		k.marks = append(k.marks, m)
	}
}

func (k *ids) any() *streamtest.Mark {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.marks) == 0 {
		return nil
	}
	return k.marks[rand.IntN(len(k.marks))]
}
