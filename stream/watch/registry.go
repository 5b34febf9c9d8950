package watch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
)

// Registry holds the watches of a process. All its methods may be called from any
// goroutine, but Add must not be called after Close.
type Registry struct {
	// Static after construction.
	ctx    context.Context
	cancel context.CancelFunc

	// The map is never modified, only replaced.
	watches atomic.Pointer[map[string]*Watch]
}

// NewRegistry returns an empty registry. Close it.
func NewRegistry() *Registry {
	r := &Registry{}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.watches.Store(&map[string]*Watch{})
	return r
}

// Add declares a watch and, unless it runs on demand, begins to prime it. It fails
// if the name is invalid or taken, or if there is no source. An unreachable upstream
// is not a failure.
func (r *Registry) Add(c Config) (*Watch, error) {
	if _, taken := r.Watch(c.Name); taken {
		return nil, fmt.Errorf("there is a watch named %q already", c.Name)
	}
	w, err := newWatch(r.ctx, c)
	if err != nil {
		return nil, err
	}
	added := false
	r.replace(func(m map[string]*Watch) {
		if _, taken := m[c.Name]; !taken {
			m[c.Name], added = w, true
		}
	})
	if !added {
		w.close()
		return nil, fmt.Errorf("there is a watch named %q already", c.Name)
	}
	return w, nil
}

// Remove stops a watch; its subscribers see Done.
func (r *Registry) Remove(name string) {
	w, ok := r.Watch(name)
	if !ok {
		return
	}
	r.replace(func(m map[string]*Watch) { delete(m, name) })
	w.close()
}

func (r *Registry) replace(change func(map[string]*Watch)) {
	for {
		old := r.watches.Load()
		changed := maps.Clone(*old)
		change(changed)
		if r.watches.CompareAndSwap(old, &changed) {
			return
		}
	}
}

// Watch returns the watch with a name.
func (r *Registry) Watch(name string) (*Watch, bool) {
	w, ok := (*r.watches.Load())[name]
	return w, ok
}

// Watches returns all watches, sorted by name.
func (r *Registry) Watches() []*Watch {
	return slices.SortedFunc(maps.Values(*r.watches.Load()), func(a, b *Watch) int {
		return cmp.Compare(a.Name(), b.Name())
	})
}

// Close stops every watch, closes the upstreams and waits for them.
func (r *Registry) Close() {
	r.cancel()
	for _, w := range r.Watches() {
		w.close()
	}
}
