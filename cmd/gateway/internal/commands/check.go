package commands

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "config",
		Short: "Work with configuration files",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("want a command: config check FILE")
		},
	}
	group.AddCommand(&cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong in a configuration file",
		Long: `Say what is wrong in a configuration file: everything at once, each with line
and column. Environment variables and the files that it names (certificates,
metadata) are read as serve would read them; nothing is connected to.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.checkConfig(args[0]) },
	})
	return group
}

func (a *app) checkConfig(file string) error {
	c, err := config.Load(file, config.Environment{})
	if err != nil {
		return err
	}
	if err := makeable(c); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	templates := ""
	if n := len(c.Templates); n > 0 {
		templates = fmt.Sprintf(", %d templates", n)
	}
	_, err = fmt.Fprintf(a.stdout, "%s: ok: %d sources, %d watches%s\n", file, len(c.Sources), len(c.Watches), templates)
	if err == nil && len(c.Watches)+len(c.Templates) == 0 {
		_, err = fmt.Fprintln(a.stdout, "There is nothing to serve: add watches, or serve with --demo.")
	}
	return err
}

// makeable makes the source of each watch, and of one of each template, as serve does, and
// closes it before it connects to anything. This finds keys that do not fit together.
func makeable(c *config.Config) error {
	u := newUpstreams(slog.New(slog.DiscardHandler))
	var errs []error
	try := func(name string, w config.Watch) {
		if err := u.try(c, w); err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w", name, err))
		}
	}
	for _, w := range c.Watches {
		try(w.Name, w)
	}
	for _, t := range c.Templates {
		try(t.Name, t.Sample())
	}
	return errors.Join(errs...)
}

// try makes and closes the source of a watch. A view has none of its own.
func (u *upstreams) try(c *config.Config, w config.Watch) error {
	if w.ViewOf != "" {
		return nil
	}
	s, err := sourceOf(c, w)
	if err != nil {
		return err
	}
	one, err := u.source(s, w, "", u.logger)
	if err == nil && one.close != nil {
		one.close()
	}
	return err
}
