package watch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// DefaultMaxWatches is how many watches of a template may be open unless it says
// otherwise.
const DefaultMaxWatches = 100

const (
	// settle is how long a watch of a template is kept after it was last used, even if
	// another one needs its place: its user may be about to subscribe. It also bounds how
	// often a client that goes through many names has watches made.
	settle = 5 * time.Second
	// minLinger is the least time that a watch of a template is kept after a request.
	minLinger = time.Second
)

// retiredUsers is the number of users of a watch that its template has removed. It
// stays far below 0 whoever holds the watch afterwards.
const retiredUsers = math.MinInt64 / 2

// ErrNoWatch is the error of Registry.Open if there is no watch with the name, and no
// template makes one.
var ErrNoWatch = errors.New("there is no such watch")

// FullError is the error of Registry.Open if a template has as many watches open as it
// may have, and all of them are in use; or if as many of them as may count for the client.
type FullError struct {
	// Open is how many watches are open, or count for the client.
	Open int
	// Max is how many may.
	Max int
	// OfClient says that the client has its share.
	OfClient bool
}

// Error says how many there are.
func (e *FullError) Error() string {
	if e.OfClient {
		return fmt.Sprintf("this client uses %d watches of this kind, of %d at most: close some, or come back later", e.Open, e.Max)
	}
	return fmt.Sprintf("%d watches of this kind are open, of %d at most: come back later", e.Open, e.Max)
}

// TemplateConfig declares a template. Name, Match and Make are required.
type TemplateConfig struct {
	// Name is what the template is called in the configuration, such as
	// "orders-{region}". It is not the name of a watch.
	Name string
	// Max is how many watches may be open at a time; DefaultMaxWatches by default.
	Max int
	// MaxPerClient is how many of them one client may use at a time; three quarters of Max
	// by default. Max: there is no such limit.
	MaxPerClient int
	// LargestValue is the most bytes of a value that can be written to the watches; 0: they
	// cannot be written to.
	LargestValue int64
	// Match reports whether the template makes the watch with a name, if there is one.
	// It is called for each request, by any goroutine.
	Match func(name string) bool
	// Make returns what the watch with a name is. The name and the template are filled in,
	// and the watch runs on demand, whatever it says. The error is ErrNoWatch if there is
	// no watch with that name. It may be called by any goroutine, for different names at
	// the same time. What it opens for the watch is opened for the client that asks for it.
	Make func(name, client string) (Config, error)
}

// Template makes watches when they are asked for, and removes them when they are no
// longer used. All its methods may be called from any goroutine.
type Template struct {
	// Static after construction.
	config   TemplateConfig
	registry *Registry
	added    time.Time

	mu      sync.Mutex        // guards the following fields, and that the registry has what is open
	making  map[string]making // by name
	opened  map[*Watch]ask
	shares  shares
	leaving map[*Watch]struct{} // removed, but ingest has not ended; with all others at most 2 * Max
	total   Stats               // of watches that have ended
	changes uint64              // of those
	closed  bool
}

// AddTemplate declares a template. A watch that was declared by its name is never made by
// a template, and of several templates the first makes a watch.
func (r *Registry) AddTemplate(c TemplateConfig) (*Template, error) {
	t, err := newTemplate(r, c)
	if err != nil {
		return nil, err
	}
	r.replace(func(s *registered) {
		if err = taken(s.templates, c.Name); err == nil {
			s.templates = append(s.templates, t)
		}
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func newTemplate(r *Registry, c TemplateConfig) (*Template, error) {
	if c.Name == "" || c.Match == nil || c.Make == nil {
		return nil, fmt.Errorf("template %q: want Name, Match and Make", c.Name)
	}
	c.Max = cmp.Or(c.Max, DefaultMaxWatches)
	c.MaxPerClient = min(cmp.Or(c.MaxPerClient, max(1, c.Max*3/4)), c.Max)
	return &Template{
		config: c, registry: r, added: time.Now(), total: newWatchCounters().stats(),
		making: map[string]making{}, opened: map[*Watch]ask{}, shares: newShares(), leaving: map[*Watch]struct{}{},
	}, nil
}

// taken returns an error if one of the templates has the name.
func taken(templates []*Template, name string) error {
	if slices.ContainsFunc(templates, func(o *Template) bool { return o.config.Name == name }) {
		return fmt.Errorf("there is a template named %q already", name)
	}
	return nil
}

// Name is what the template is called in the configuration.
func (t *Template) Name() string { return t.config.Name }

// MaxPerClient is how many of them one client may use at a time.
func (t *Template) MaxPerClient() int { return t.config.MaxPerClient }

// Max is how many watches may be open at a time.
func (t *Template) Max() int { return t.config.Max }

// LargestValue is the most bytes of a value that can be written to its watches.
func (t *Template) LargestValue() int64 { return t.config.LargestValue }

// Watches returns the open watches, in no order.
func (t *Template) Watches() []*Watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.opened))
}

// Stats returns the counters of all watches that the template has made.
func (t *Template) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := newWatchCounters().stats()
	sum.add(t.total)
	for w := range t.opened {
		sum.add(w.Stats())
	}
	for w := range t.leaving {
		sum.add(w.Stats())
	}
	return sum
}

// Changes counts what was committed in all watches that the template has made; see Watch.Changes.
func (t *Template) Changes() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.changes
	for w := range t.opened {
		sum += w.Changes()
	}
	for w := range t.leaving {
		sum += w.Changes()
	}
	return sum
}

// open returns the watch with a name for a client, and makes it if there is none.
func (t *Template) open(name, client string) (*Watch, error) {
	if stream.CheckWatchName(name) != nil {
		return nil, ErrNoWatch
	}
	for {
		w, wait, err := t.enter(name, client)
		switch {
		case w != nil || err != nil:
			return w, err
		case wait == nil:
			return t.make(name, client)
		}
		<-wait
	}
}

// enter returns the watch with a name, or what to wait for before another attempt, or
// neither: the caller must make it.
func (t *Template) enter(name, client string) (*Watch, <-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w, ok := t.registry.Watch(name); ok {
		if w.template != t {
			return w, nil, nil
		}
		if full := t.asked(w, client); full != nil {
			return nil, nil, full
		}
		return w, nil, nil
	}
	if m, under := t.making[name]; under {
		return nil, m.done, nil
	}
	if t.closed {
		return nil, nil, errStopped
	}
	if client != "" {
		if full := t.exhausted(client, name); full != nil {
			return nil, nil, full
		}
	}
	open := len(t.opened) + len(t.making)
	if crowded := open+len(t.leaving) >= 2*t.config.Max; crowded || open >= t.config.Max && !t.makeRoom() {
		return nil, nil, &FullError{Open: open, Max: t.config.Max}
	}
	t.making[name] = making{client: client, done: make(chan struct{})}
	return nil, nil, nil
}

// make makes a watch that enter has announced.
func (t *Template) make(name, client string) (w *Watch, err error) {
	defer func() { // even if Make panics, so that nobody waits for it
		t.mu.Lock()
		defer t.mu.Unlock()
		close(t.making[name].done)
		delete(t.making, name)
		if w != nil && !t.admit(w, client) {
			w, err = nil, errStopped
		}
	}()
	c, err := t.config.Make(name, client)
	if err != nil {
		return nil, err
	}
	c.Name, c.OnDemand, c.Required = name, true, false
	c.Linger = max(c.withDefaults().Linger, minLinger)
	if w, err = newWatch(t.registry, c, t); err == nil {
		w.start()
	}
	return w, err
}

// admit makes a new watch known. It returns false if the registry was closed, or a watch
// of that name declared, in the meantime. t.mu is held.
func (t *Template) admit(w *Watch, client string) bool {
	if t.closed || !t.registry.enter(w) {
		t.leaving[w] = struct{}{}
		w.cancel()
		return false
	}
	t.opened[w] = ask{at: t.now(), client: client}
	return true
}

// makeRoom removes the watch that has not been used for the longest time. It returns
// false if all are in use. t.mu is held.
func (t *Template) makeRoom() bool {
	var oldest *Watch
	before := t.now() - settle
	for w := range t.opened {
		if used := t.lastUse(w); w.users.Load() == 0 && used <= before {
			oldest, before = w, used
		}
	}
	if oldest == nil || !t.take(oldest) {
		return false
	}
	oldest.cancel()
	return true
}

// lastUse is when a watch was last asked for, or held. t.mu is held.
func (t *Template) lastUse(w *Watch) time.Duration {
	return max(t.opened[w].at, time.Duration(w.released.Load()))
}

// take removes a watch that nobody holds. t.mu is held.
func (t *Template) take(w *Watch) bool {
	if !w.users.CompareAndSwap(0, retiredUsers) {
		return false
	}
	t.drop(w)
	return true
}

// drop removes a watch. t.mu is held.
func (t *Template) drop(w *Watch) {
	delete(t.opened, w)
	t.leaving[w] = struct{}{}
	t.registry.forget(w)
}

// retire removes a watch that has not been used while it lingered. Otherwise it returns
// how much longer it has to linger. It is called by the watch's ingest.
func (t *Template) retire(w *Watch) (retired bool, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, open := t.opened[w]; !open {
		// It was only just made, or is being removed by somebody else, who ends ingest.
		return false, w.config.Linger
	}
	if idle := t.now() - t.lastUse(w); idle < w.config.Linger {
		return false, w.config.Linger - idle
	}
	return t.take(w), w.config.Linger
}

// remove removes a watch, whoever holds it. The caller ends its ingest.
func (t *Template) remove(w *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, open := t.opened[w]; open {
		t.drop(w)
	}
}

// ended is called when a watch's ingest has ended.
func (t *Template) ended(w *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return // its registry waits for it, and asks for no figures
	}
	delete(t.leaving, w)
	t.total.add(w.Stats())
	t.changes += w.Changes()
}

// close makes no more watches, and returns those that were removed and have not ended.
func (t *Template) close() []*Watch {
	t.mu.Lock()
	t.closed = true
	under := slices.Collect(maps.Values(t.making))
	t.mu.Unlock()
	for _, m := range under {
		<-m.done
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.leaving))
}

// end removes the open watches of the template, and makes no more: the registry has the content
// next now, without the template. It returns the watches that have not ended yet.
func (t *Template) end(next *registered) []*Watch {
	leaving := t.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := range t.opened {
		t.drop(w)
		w.markRemoved(next)
		w.cancel()
		leaving = append(leaving, w)
	}
	return leaving
}

// now is the time since the template was added, which no adjusted clock changes.
func (t *Template) now() time.Duration { return time.Since(t.added) }
