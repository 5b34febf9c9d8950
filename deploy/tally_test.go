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
	ended    time.Time // when the last stream did; zero: one is open
	gaps     []time.Duration
	resent   int // snapshots, to a client that had an id
	statuses map[int]int
}

// receive counts an event of a stream.
func (t *tally) receive(e client.Event) error {
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
