package policy

import (
	"container/list"
	"sync"
)

// recent remembers the values that were used last. All methods may be called from any
// goroutine.
type recent[K comparable, V any] struct {
	most int // static after construction

	mu    sync.Mutex // guards the following fields
	known map[K]*list.Element
	order list.List // of remembered[K, V], the last used first
}

type remembered[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](most int) *recent[K, V] {
	return &recent[K, V]{most: most, known: map[K]*list.Element{}}
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

// put remembers a value, and returns it, or the one that another goroutine has put first.
func (r *recent[K, V]) put(key K, v V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.known[key]; ok {
		r.order.MoveToFront(at)
		return at.Value.(remembered[K, V]).value
	}
	r.known[key] = r.order.PushFront(remembered[K, V]{key, v})
	if r.order.Len() > r.most {
		oldest := r.order.Remove(r.order.Back()).(remembered[K, V])
		delete(r.known, oldest.key)
	}
	return v
}

func (r *recent[K, V]) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order.Len()
}
