package watch

import (
	"fmt"
	"slices"
)

// Draft is the next content of a registry: the watches and templates that it keeps, and those
// that are added. Commit puts it into effect as a whole: a request sees all of it or nothing.
//
// Owned by one goroutine. A registry has at most one draft at a time. Meanwhile only Open and
// methods that read may be called.
type Draft struct {
	// Static after construction.
	registry *Registry

	watches   map[string]*Watch // declared, kept or added
	added     []*Watch
	templates []*Template
}

// Draft returns an empty draft, which keeps nothing of the registry. It must be committed or
// discarded.
func (r *Registry) Draft() *Draft { return &Draft{registry: r, watches: map[string]*Watch{}} }

// Watch returns the watch with a name, if it is in the draft.
func (d *Draft) Watch(name string) (*Watch, bool) {
	w, ok := d.watches[name]
	return w, ok
}

// Keep keeps a declared watch as it is, with its subscribers. It returns false if there is no
// watch with that name.
func (d *Draft) Keep(name string) bool {
	w, ok := d.registry.Watch(name)
	if !ok || w.template != nil || d.watches[name] != nil {
		return false
	}
	d.watches[name] = w
	return true
}

// Add declares a watch, which replaces the one with that name in the registry, if any. It fails
// as Registry.Add does. The watch connects to its upstream after Commit.
func (d *Draft) Add(c Config) (*Watch, error) {
	if d.watches[c.Name] != nil {
		c.withDefaults().Close()
		return nil, fmt.Errorf("there is a watch named %q already", c.Name)
	}
	w, err := newWatch(d.registry, c, nil)
	if err != nil {
		return nil, err
	}
	d.watches[c.Name] = w
	d.added = append(d.added, w)
	return w, nil
}

// KeepTemplate keeps a template and its watches. The templates make watches in the order in
// which they are kept and added. It returns false if there is none with that name.
func (d *Draft) KeepTemplate(name string) bool {
	before := d.registry.Templates()
	at := slices.IndexFunc(before, func(t *Template) bool { return t.Name() == name })
	if at < 0 || taken(d.templates, name) != nil {
		return false
	}
	d.templates = append(d.templates, before[at])
	return true
}

// AddTemplate declares a template, which replaces the one with that name in the registry, if
// any.
func (d *Draft) AddTemplate(c TemplateConfig) error {
	if err := taken(d.templates, c.Name); err != nil {
		return err
	}
	t, err := newTemplate(d.registry, c)
	if err != nil {
		return err
	}
	d.templates = append(d.templates, t)
	return nil
}

// Discard leaves the registry as it is.
func (d *Draft) Discard() {
	for _, w := range d.added {
		w.discard()
	}
}

// Commit puts the draft into effect. It returns when the watches that are not in it have ended;
// their subscribers see Done. The added watches start after that, so that they can use the
// memory of the others.
func (d *Draft) Commit() {
	var next *registered
	var gone []*Watch
	before := d.registry.Templates()
	d.registry.replace(func(s *registered) {
		gone = gone[:0]
		s.templates = d.templates
		for name, w := range s.watches {
			if !d.has(w, s) {
				gone = append(gone, w)
				delete(s.watches, name)
			}
		}
		for name, w := range d.watches {
			s.watches[name] = w
		}
		next = s
	})
	for _, w := range gone {
		w.markRemoved(next)
	}
	for _, w := range gone {
		w.leave()
	}
	for _, t := range before {
		if !slices.Contains(d.templates, t) {
			gone = append(gone, t.end(next)...)
		}
	}
	for _, w := range gone {
		<-w.Done()
	}
	for _, w := range d.added {
		w.start()
	}
}

// has reports whether a watch of the registry stays in it: one of a template stays as long
// as the template is the one that would make it now.
func (d *Draft) has(w *Watch, next *registered) bool {
	declared := d.watches[w.Name()]
	if w.template == nil || declared != nil {
		return declared == w
	}
	return next.maker(w.Name()) == w.template
}

// leave ends a watch that the registry no longer has.
func (w *Watch) leave() {
	if w.template != nil {
		w.template.remove(w)
	}
	w.cancel()
}
