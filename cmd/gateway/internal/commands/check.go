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
	_, err = fmt.Fprintf(a.stdout, "%s: ok: %d sources, %d watches\n", file, len(c.Sources), len(c.Watches))
	if err == nil && len(c.Watches) == 0 {
		_, err = fmt.Fprintln(a.stdout, "There is nothing to serve: add watches, or serve with --demo.")
	}
	return err
}

// makeable makes the source of each watch, as serve does, and closes it before it
// connects to anything. This finds keys that do not fit together.
func makeable(c *config.Config) error {
	u := newUpstreams(slog.New(slog.DiscardHandler))
	defer u.close()
	var errs []error
	for _, w := range c.Watches {
		if w.ViewOf != "" {
			continue // it is made of its watch, and the configuration was read with both
		}
		s, err := sourceOf(c, w)
		if err == nil {
			_, _, err = u.source(s, w)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w", w.Name, err))
		}
	}
	return errors.Join(errs...)
}
