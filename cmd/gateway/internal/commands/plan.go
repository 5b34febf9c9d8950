package commands

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/loglimit"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
)

// counts are the numbers of watches and templates that a draft keeps, and so on.
type counts struct{ kept, replaced, added, removed int }

// plan decides which entries of a configuration are unchanged.
//
// Owned by draft.
type plan struct {
	// Static after construction.
	before, after *config.Config

	decided map[string]bool // of the entries looked at so far: whether they are kept
	counts
}

// draft returns the next content of the registry: the watches and templates of the
// configuration. Those that have not changed since the former configuration, if any, are kept.
func (u *upstreams) draft(registry *watch.Registry, before *config.Config) (*watch.Draft, counts, error) {
	p := &plan{before: before, after: u.config, decided: map[string]bool{}}
	if before == nil {
		p.before = &config.Config{}
	}
	if err := u.openStores(); err != nil {
		return nil, counts{}, err
	}
	d := registry.Draft()
	for _, w := range u.config.Watches {
		if p.count(p.keepsWatch(w) && d.Keep(w.Name), hadWatch(p.before, w.Name)) {
			continue
		}
		if err := u.declare(d, registry, w, before != nil); err != nil {
			d.Discard()
			return nil, counts{}, fmt.Errorf("watch %s: %w", w.Name, err)
		}
	}
	for _, t := range u.config.Templates {
		_, had := named(p.before.Templates, t.Name, nameOfTemplate)
		if p.count(p.keepsTemplate(t) && d.KeepTemplate(t.Name), had) {
			continue
		}
		if err := d.AddTemplate(u.template(registry, t)); err != nil {
			d.Discard()
			return nil, counts{}, fmt.Errorf("template %s: %w", t.Name, err)
		}
	}
	p.removed = len(p.before.Watches) + len(p.before.Templates) - p.counts.kept - p.replaced
	return d, p.counts, nil
}

// declare adds a watch to a draft.
func (u *upstreams) declare(d *watch.Draft, registry *watch.Registry, w config.Watch, late bool) error {
	wc, err := u.configure(registry, w, "", u.logger)
	if err != nil {
		return err
	}
	wc.Late = late
	_, err = d.Add(wc)
	return err
}

// count counts an entry, and returns whether it is kept.
func (p *plan) count(kept, had bool) bool {
	switch {
	case kept:
		p.kept++
	case had:
		p.replaced++
	default:
		p.added++
	}
	return kept
}

// keepsWatch reports whether a watch, and everything that it follows, is unchanged.
func (p *plan) keepsWatch(w config.Watch) bool {
	return p.decide(w.Name, func() bool {
		old, had := named(p.before.Watches, w.Name, nameOfWatch)
		return had && old.Equal(w) && p.keepsParent(w, false)
	})
}

// keepsTemplate is like keepsWatch, for a template.
func (p *plan) keepsTemplate(t *config.Template) bool {
	return p.decide(t.Name, func() bool {
		old, had := named(p.before.Templates, t.Name, nameOfTemplate)
		return had && old.Equal(t) && p.keepsParent(t.Sample(), true)
	})
}

func (p *plan) decide(name string, keeps func() bool) bool {
	if _, decided := p.decided[name]; !decided {
		p.decided[name] = keeps()
	}
	return p.decided[name]
}

// keepsParent reports whether what a watch follows is unchanged: its source, or the watch that
// it is a view of. A store keeps its resources when its limits change, but templates tell
// clients the limits.
func (p *plan) keepsParent(w config.Watch, template bool) bool {
	if w.ViewOf != "" {
		return p.keepsName(w.ViewOf)
	}
	was, had := named(p.before.Sources, w.Source, nameOfSource)
	is, has := named(p.after.Sources, w.Source, nameOfSource)
	stays := is.Type == config.Store && was.Type == config.Store && is.Store.Path == was.Store.Path && !template
	return had && has && (stays || was.Equal(is))
}

// keepsName reports whether the same entry as before has the watch with a name, and is kept.
func (p *plan) keepsName(name string) bool {
	if w, declared := named(p.after.Watches, name, nameOfWatch); declared {
		return p.keepsWatch(w)
	}
	was, is := makerOf(p.before, name), makerOf(p.after, name)
	return was != nil && is != nil && was.Name == is.Name && p.keepsTemplate(is)
}

// makerOf returns the template that makes the watch with a name; nil: there is none, or an
// entry of that name.
func makerOf(c *config.Config, name string) *config.Template {
	at := slices.IndexFunc(c.Templates, func(t *config.Template) bool { return t.Match(name) })
	if at < 0 || hadWatch(c, name) {
		return nil
	}
	return c.Templates[at]
}

func hadWatch(c *config.Config, name string) bool {
	_, had := named(c.Watches, name, nameOfWatch)
	return had
}

func nameOfWatch(w config.Watch) string        { return w.Name }
func nameOfTemplate(t *config.Template) string { return t.Name }
func nameOfSource(s config.Source) string      { return s.Name }

// named returns the entry with a name.
func named[T any](entries []T, name string, nameOf func(T) string) (found T, ok bool) {
	at := slices.IndexFunc(entries, func(one T) bool { return nameOf(one) == name })
	if at < 0 {
		return found, false
	}
	return entries[at], true
}

// linesPerMinute is how many lines the watches of a template log. Clients cause them: each name
// that a template matches is a watch that starts, fails and ends.
const linesPerMinute = 30

// template describes a template of a registry.
func (u *upstreams) template(registry *watch.Registry, t *config.Template) watch.TemplateConfig {
	logger := loglimit.New(u.logger, linesPerMinute).With("template", t.Name)
	return watch.TemplateConfig{
		Name: t.Name, Max: t.Max, MaxPerClient: t.MaxPerClient, Match: t.Match, LargestValue: u.largestValue(t),
		Make: func(name, client string) (watch.Config, error) {
			w, ok := t.Watch(name)
			if !ok {
				return watch.Config{}, watch.ErrNoWatch
			}
			if err := openParent(registry, w, client); err != nil {
				return watch.Config{}, err
			}
			wc, err := u.configure(registry, w, t.Name, logger)
			if err != nil {
				logger.Error("cannot open a watch", "watch", name, "error", err)
				return watch.Config{}, errors.New("the watch cannot be opened")
			}
			return wc, nil
		},
	}
}

// largestValue returns the most bytes of a value that the watches of a template accept; 0:
// they cannot be written to.
func (u *upstreams) largestValue(t *config.Template) int64 {
	s, err := sourceOf(u.config, t.Sample())
	if err != nil || s.Type != config.Store {
		return 0
	}
	return cmp.Or(s.Store.MaxValueBytes, store.DefaultMaxValueBytes)
}

// openParent opens the watch that a watch of a template is a view of, for the client that asks for
// the view. If that is refused, so is the view.
func openParent(registry *watch.Registry, w config.Watch, client string) error {
	if w.ViewOf == "" {
		return nil
	}
	_, err := registry.OpenFor(client, w.ViewOf)
	return err
}
