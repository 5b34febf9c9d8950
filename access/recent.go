package access

import (
	"container/list"
	"sync"
)

// recent remembers the values that were used last. All methods may be called from any
// goroutine.
type recent[K comparable, V any] struct {
	most, mostBytes int // static after construction

	mu    sync.Mutex // guards the following fields
	bytes int        // of all values
	known map[K]*list.Element
	order list.List // of remembered[K, V], the last used first
}

type remembered[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

func newRecent[K comparable, V any](most, mostBytes int) *recent[K, V] {
	return &recent[K, V]{most: most, mostBytes: mostBytes, known: map[K]*list.Element{}}
}

func (r *recent[K, V]) get(key K) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.known[key]
	if !ok {
		return v, false
	}
	r.order.MoveToFront(at)
	return at.Value.(remembered[K, V]).value, true
}

// put remembers a value that takes so many bytes, and returns it, or the one that another
// goroutine has put first.
func (r *recent[K, V]) put(key K, v V, bytes int) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.known[key]; ok {
		r.order.MoveToFront(at)
		return at.Value.(remembered[K, V]).value
	}
	r.known[key] = r.order.PushFront(remembered[K, V]{key, v, bytes})
	r.bytes += bytes
	for r.order.Len() > r.most || r.bytes > r.mostBytes {
		oldest := r.order.Remove(r.order.Back()).(remembered[K, V])
		delete(r.known, oldest.key)
		r.bytes -= oldest.bytes
	}
	return v
}

func (r *recent[K, V]) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order.Len()
}
