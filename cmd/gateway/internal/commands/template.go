package commands

import (
	"errors"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/stream/watch"
)

// addTemplate declares a template.
func (u *upstreams) addTemplate(registry *watch.Registry, c *config.Config, t *config.Template) error {
	logger := sparingly(u.logger).With("template", t.Name)
	_, err := registry.AddTemplate(watch.TemplateConfig{
		Name: t.Name, Max: t.Max, Match: t.Match, LargestValue: u.largestValue(c, t),
		Make: func(name string) (watch.Config, error) {
			w, ok := t.Watch(name)
			if !ok {
				return watch.Config{}, watch.ErrNoWatch
			}
			wc, err := u.configure(registry, c, w, t.Name, logger)
			if err != nil {
				logger.Error("cannot open a watch", "watch", name, "error", err)
				return watch.Config{}, errors.New("the watch cannot be opened")
			}
			return wc, nil
		},
	})
	return err
}

// largestValue returns the most bytes of a value that the watches of a template accept; 0:
// they cannot be written to.
func (u *upstreams) largestValue(c *config.Config, t *config.Template) int64 {
	s, err := sourceOf(c, t.Sample())
	if err != nil || s.Type != config.Store {
		return 0
	}
	return u.store(s).MaxValueBytes()
}
