//go:build servers

package deploy_test

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/stream"
)

// tally is what a client experiences.
type tally struct {
	asOf atomic.Uint64 // revision of the last id
	dead atomic.Pointer[error]

	mu       sync.Mutex
	heard    time.Time     // when the last event came
	silence  time.Duration // the longest time between two events, whatever happened meanwhile
	ended    time.Time     // when the last stream did; zero: one is open
	gaps     []time.Duration
	resent   int // snapshots, to a client that had an id
	statuses map[int]int
}

// receive counts an event of a stream.
func (t *tally) receive(e client.Event) error {
	t.hear()
	if e.Type == "reset" && t.asOf.Load() > 0 {
		t.mu.Lock()
		t.resent++
		t.mu.Unlock()
	}
	if e.ID == "" {
		return nil
	}
	position, err := stream.ParsePosition(e.ID)
	if err != nil {
		return err
	}
	t.asOf.Store(position.AsOf)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended.IsZero() {
		t.gaps = append(t.gaps, time.Since(t.ended))
		t.ended = time.Time{}
	}
	return nil
}

func (t *tally) hear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.heard.IsZero() {
		t.silence = max(t.silence, time.Since(t.heard))
	}
	t.heard = time.Now()
}

// longestSilence returns the longest time between two events, and forgets it.
func (t *tally) longestSilence() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	longest := t.silence
	t.silence = 0
	return longest
}

// lose counts the end of a stream, or an attempt that failed. A goodbye is no error.
func (t *tally) lose(reason error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended.IsZero() {
		t.ended = time.Now()
	}
	if p := new(client.Problem); errors.As(reason, &p) {
		if t.statuses == nil {
			t.statuses = map[int]int{}
		}
		t.statuses[p.Status]++
	}
}

// refused is how many answers were not 200, and badGateway how many of these were 502.
func (t *tally) refused() (refused, badGateway int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.statuses {
		refused += n
	}
	return refused, t.statuses[http.StatusBadGateway]
}
