package figures

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/watchtide/watchtide/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// board is an upstream in this process that can delay its changes for a reader.
type board struct {
	mu       sync.Mutex
	revision uint64
	values   map[string]stream.Resource
	told     []stream.Resource
	changed  chan struct{}
	lose     func(i int) bool
}

func newBoard() *board {
	return &board{values: map[string]stream.Resource{}, changed: make(chan struct{})}
}

func (b *board) put(_ context.Context, i int, value []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.revision++
	r := stream.Resource{Key: fmt.Sprint("k", i), Revision: b.revision, Value: value}
	b.values[r.Key] = r
	b.told = append(b.told, r)
	close(b.changed)
	b.changed = make(chan struct{})
	return nil
}

// next waits for the changes after n, and returns them.
func (b *board) next(ctx context.Context, n int) ([]stream.Resource, error) {
	for {
		b.mu.Lock()
		told, changed := b.told[n:], b.changed
		b.mu.Unlock()
		if len(told) > 0 {
			return told, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (b *board) Watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	b.mu.Lock()
	all, n, at := make([]stream.Resource, 0, len(b.values)), len(b.told), b.revision
	for _, r := range b.values {
		all = append(all, r)
	}
	b.mu.Unlock()
	if err := sink.Reset("e"); err != nil {
		return err
	}
	for _, r := range all {
		if err := sink.Upsert(r); err != nil {
			return err
		}
	}
	for err := sink.Commit(at); ; n++ {
		if err != nil {
			return err
		}
		told, waited := b.next(ctx, n)
		if waited != nil {
			return waited
		}
		if b.lose == nil || !b.lose(n) {
			err = sink.Upsert(told[0])
		}
		if err == nil {
			err = sink.Commit(told[0].Revision)
		}
	}
}

func (b *board) raw(ctx context.Context, primed func(), changed func([]byte)) error {
	b.mu.Lock()
	n := len(b.told)
	b.mu.Unlock()
	primed()
	for {
		told, err := b.next(ctx, n)
		if err != nil {
			return err
		}
		changed(told[0].Value)
		n++
	}
}

func (b *board) rig(resources int) Rig {
	return Rig{
		Resources: resources, Writes: resources, Source: b, Put: b.put, Raw: b.raw,
	}
}

// TestEveryFigure runs the phases against an upstream that costs nothing.
func TestEveryFigure(t *testing.T) {
	result := testing.Benchmark(func(b *testing.B) { Run(b, newBoard().rig(50)) })
	for _, unit := range []string{"prime-s", "raw-prime-s", "prime/raw", "changes/s", "raw-changes/s"} {
		if result.Extra[unit] <= 0 {
			t.Errorf("%s is %v", unit, result.Extra[unit])
		}
	}
	if result.Extra["added-p99-µs"] < result.Extra["added-p50-µs"] {
		t.Errorf("the percentiles are %v", result.Extra)
	}
}

// TestLostChangeIsNoFigure: a source that loses a change must not look fast.
func TestLostChangeIsNoFigure(t *testing.T) {
	b := newBoard()
	b.lose = func(n int) bool { return n == 60 }
	rig := b.rig(50)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := rig.load(ctx); err != nil {
		t.Fatal(err)
	}
	m := measurement{rig: rig, ctx: ctx, seen: map[string][]float64{}}
	if err := m.throughput(); err == nil {
		t.Errorf("a lost change went unnoticed: %v", m.seen)
	}
}

func TestStamp(t *testing.T) {
	for range 100 {
		want := rand.Int64()
		value := stamped(want)
		wrapped, _ := json.Marshal(map[string]any{"text": string(value)})
		if got, err := stampOf(wrapped); got != want || err != nil {
			t.Errorf("%s: %d, %v", wrapped, got, err)
		}
		if got, err := stampOf([]byte(`{"wrapped":` + string(value) + `}`)); got != want || err != nil || len(value) != valueBytes {
			t.Errorf("%s: %d, %v", value, got, err)
		}
	}
	if _, err := stampOf([]byte(`{"n":1}`)); err == nil {
		t.Error("there is no stamp")
	}
}
