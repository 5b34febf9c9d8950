package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Registry holds the watches of a process. All its methods may be called from any
// goroutine, but Add and AddTemplate must not be called after Close.
type Registry struct {
	// Static after construction.
	ctx    context.Context
	cancel context.CancelFunc

	state atomic.Pointer[registered]
	peers sync.Map // of *peers, by the names of sources
}

// registered is the content of a registry at one time. It is never modified, only replaced.
type registered struct {
	watches   map[string]*Watch
	templates []*Template // in the order in which they make watches
}

// maker returns the template that makes the watch with a name; nil: there is none.
func (s *registered) maker(name string) *Template {
	for _, t := range s.templates {
		if t.config.Match(name) {
			return t
		}
	}
	return nil
}

// serves reports whether there is a watch with a name, or a template that makes it.
func (s *registered) serves(name string) bool {
	return s.watches[name] != nil || s.maker(name) != nil
}

// NewRegistry returns an empty registry. Close it.
func NewRegistry() *Registry {
	r := &Registry{}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.state.Store(&registered{watches: map[string]*Watch{}})
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
	w, err := newWatch(r, c, nil)
	if err != nil {
		return nil, err
	}
	if !r.enter(w) {
		w.discard()
		return nil, fmt.Errorf("there is a watch named %q already", c.Name)
	}
	w.start()
	return w, nil
}

// enter makes a watch known, unless its name is taken.
func (r *Registry) enter(w *Watch) (added bool) {
	r.replace(func(s *registered) {
		if _, taken := s.watches[w.Name()]; !taken {
			s.watches[w.Name()] = w
		}
		added = s.watches[w.Name()] == w
	})
	return added
}

// forget makes a watch unknown.
func (r *Registry) forget(w *Watch) {
	r.replace(func(s *registered) {
		if s.watches[w.Name()] == w {
			delete(s.watches, w.Name())
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

// replace changes the content of the registry. change is called again if another goroutine was
// faster.
func (r *Registry) replace(change func(*registered)) {
	for {
		old := r.state.Load()
		changed := &registered{watches: maps.Clone(old.watches), templates: slices.Clone(old.templates)}
		change(changed)
		if r.state.CompareAndSwap(old, changed) {
			return
		}
	}
}

// Watch returns the watch with a name.
func (r *Registry) Watch(name string) (*Watch, bool) {
	w, ok := r.state.Load().watches[name]
	return w, ok
}

// Watches returns all watches, sorted by name.
func (r *Registry) Watches() []*Watch {
	return slices.SortedFunc(maps.Values(r.state.Load().watches), func(a, b *Watch) int {
		return cmp.Compare(a.Name(), b.Name())
	})
}

// Open returns the watch with a name. If there is none, the first template that has
// watches of that name makes it. The error is ErrNoWatch if there is neither, a FullError
// if the template has too many watches open, and anything else if it failed to make it.
//
// Subscribe to the watch, or prime it, without delay: a template removes a watch that
// nobody uses, though not in the first second.
//
// The watch counts for no client. Use OpenFor for a request of one.
func (r *Registry) Open(name string) (*Watch, error) { return r.OpenFor("", name) }

// OpenFor is Open for a client, any text that stands for one. A watch of a template counts for it
// if it was the last to ask for it, and no stream follows the watch; see also Watch.Use. The error
// is a FullError, too, if the client has its share of the template.
func (r *Registry) OpenFor(client, name string) (*Watch, error) {
	for {
		s := r.state.Load()
		w, err := s.open(name, client)
		if !errors.Is(err, errStopped) || s == r.state.Load() {
			return w, err
		}
		// The template is gone: another one, or a watch, may have the name.
	}
}

func (s *registered) open(name, client string) (*Watch, error) {
	w, t := s.watches[name], (*Template)(nil)
	switch {
	case w == nil:
		t = s.maker(name)
	case w.template == nil:
		return w, nil
	default:
		t = w.template
	}
	if t == nil {
		return nil, ErrNoWatch
	}
	return t.open(name, client)
}

// Declared returns the name under which a watch is declared: its own, or that of the
// template that has made it or could make it. false: there is no such watch. It makes none.
func (r *Registry) Declared(name string) (string, bool) {
	s := r.state.Load()
	w, t := s.watches[name], s.maker(name)
	switch {
	case w != nil && w.template != nil:
		return w.template.Name(), true
	case w != nil:
		return name, true
	case t != nil:
		return t.Name(), true
	}
	return "", false
}

// Templates returns all templates, in the order in which they make watches. They must not
// be modified.
func (r *Registry) Templates() []*Template { return r.state.Load().templates }

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
