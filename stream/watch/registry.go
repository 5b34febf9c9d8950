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
// goroutine, but Add and AddTemplate must not be called after Close.
type Registry struct {
	// Static after construction.
	ctx    context.Context
	cancel context.CancelFunc

	// The map and the slice are never modified, only replaced.
	watches   atomic.Pointer[map[string]*Watch]
	templates atomic.Pointer[[]*Template] // in the order in which they were added
}

// NewRegistry returns an empty registry. Close it.
func NewRegistry() *Registry {
	r := &Registry{}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.watches.Store(&map[string]*Watch{})
	r.templates.Store(&[]*Template{})
	return r
}

// Add declares a watch and, unless it runs on demand, begins to prime it. It fails
// if the name is invalid or taken, or if there is no source. An unreachable upstream
// is not a failure.
func (r *Registry) Add(c Config) (*Watch, error) {
	if _, taken := r.Watch(c.Name); taken {
		c.withDefaults().Close()
		return nil, fmt.Errorf("there is a watch named %q already", c.Name)
	}
	w, err := newWatch(r.ctx, c, nil)
	if err != nil {
		return nil, err
	}
	if !r.enter(w) {
		w.close()
		return nil, fmt.Errorf("there is a watch named %q already", c.Name)
	}
	return w, nil
}

// enter makes a watch known, unless its name is taken.
func (r *Registry) enter(w *Watch) (added bool) {
	r.replace(func(m map[string]*Watch) {
		if _, taken := m[w.Name()]; !taken {
			m[w.Name()] = w
		}
		added = m[w.Name()] == w
	})
	return added
}

// forget makes a watch unknown.
func (r *Registry) forget(w *Watch) {
	r.replace(func(m map[string]*Watch) {
		if m[w.Name()] == w {
			delete(m, w.Name())
		}
	})
}

// Remove stops a watch; its subscribers see Done.
func (r *Registry) Remove(name string) {
	w, ok := r.Watch(name)
	if !ok {
		return
	}
	if w.template != nil {
		w.template.remove(w)
	}
	r.forget(w)
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

// Open returns the watch with a name. If there is none, the first template that has
// watches of that name makes it. The error is ErrNoWatch if there is neither, a FullError
// if the template has too many watches open, and anything else if it failed to make it.
//
// Subscribe to the watch, or prime it, without delay: a template removes a watch that
// nobody uses, though not in the first second.
func (r *Registry) Open(name string) (*Watch, error) {
	switch w, ok := r.Watch(name); {
	case ok && w.template == nil:
		return w, nil
	case ok:
		return w.template.open(name)
	}
	for _, t := range *r.templates.Load() {
		if t.config.Match(name) {
			return t.open(name)
		}
	}
	return nil, ErrNoWatch
}

// Templates returns all templates, in the order in which they were added.
func (r *Registry) Templates() []*Template { return *r.templates.Load() }

// Close stops every watch, closes the upstreams and waits for them.
func (r *Registry) Close() {
	r.cancel()
	var removed []*Watch
	for _, t := range r.Templates() {
		removed = append(removed, t.close()...)
	}
	for _, w := range append(r.Watches(), removed...) {
		w.close()
	}
}
