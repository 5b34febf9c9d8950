package host

import (
	"context"
	"github.com/watchtide/watchtide/stream/sourcetest"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
)

// TestConformance runs the suite of every source against a machine whose
// contents the suite defines. Resumes is not claimed: only the newest position
// can be resumed.
func TestConformance(t *testing.T) {
	sourcetest.Run(t, func(*testing.T) *sourcetest.Harness {
		m := &fakeMachine{resources: map[string]string{}}
		return &sourcetest.Harness{
			// Shorter than New allows, so that the suite does not have to wait.
			Source:      newSource(m, time.Millisecond),
			Put:         func(key, value string) error { return m.write(streamtest.Write{Key: key, Value: value}) },
			Delete:      func(key string) error { return m.write(streamtest.Write{Key: key, Delete: true}) },
			Transaction: func(writes []streamtest.Write) error { return m.write(writes...) },
		}
	})
}

// fakeMachine is a machine whose contents a test writes.
type fakeMachine struct {
	mu        sync.Mutex // guards resources
	resources map[string]string
}

func (m *fakeMachine) write(writes ...streamtest.Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range writes {
		if w.Delete {
			delete(m.resources, w.Key)
			continue
		}
		m.resources[w.Key] = w.Value
	}
	return nil
}

func (m *fakeMachine) read(context.Context) ([]item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := make([]item, 0, len(m.resources))
	for _, key := range slices.Sorted(maps.Keys(m.resources)) {
		items = append(items, item{key: key, value: []byte(m.resources[key])})
	}
	return items, nil
}
