package commands

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/cmd/gateway/internal/telemetry"
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/source/postgres"
	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream"
)

func (a *app) configCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "config",
		Short: "Work with configuration files",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("want a command: config check FILE, or config can --config FILE WATCH [KEY]")
		},
	}
	databases := false
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong in a configuration file",
		Long: `Say what is wrong in a configuration file: everything at once, each with line
and column. Environment variables and the files that it names (certificates,
metadata) are read as serve would read them; nothing is connected to.

With --databases, the sources of type postgres are connected to, and what their
tables lack is said, with the statements that provide it. Nothing is changed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.checkConfig(cmd.Context(), args[0], databases) },
	}
	check.Flags().BoolVar(&databases, "databases", false, "connect to PostgreSQL, and say what the tables lack")
	group.AddCommand(check, a.canCommand())
	return group
}

func (a *app) checkConfig(ctx context.Context, file string, databases bool) error {
	c, err := config.Load(file, config.Environment{Getenv: a.inserted.Getenv})
	if err != nil {
		return err
	}
	if err := makeable(c); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if databases {
		if err := provided(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if _, err := telemetry.NewSettings(c.Tracing, os.LookupEnv); err != nil {
		return err
	}
	templates := ""
	if n := len(c.Templates); n > 0 {
		templates = ", " + count(n, "template", "templates")
	}
	_, err = fmt.Fprintf(a.stdout, "%s: ok: %s, %s%s\n", file, count(len(c.Sources), "source", "sources"), count(len(c.Watches), "watch", "watches"), templates)
	if err == nil && c.Policy != nil {
		err = a.warnOfAdditions(c.Policy)
	}
	if err == nil {
		err = a.warnOfDerived(c)
	}
	if err == nil && len(c.Watches)+len(c.Templates) == 0 {
		_, err = fmt.Fprintln(a.stdout, "There is nothing to serve: add watches, or serve with --demo.")
	}
	return err
}

// warnOfAdditions says what rules leave out for nobody.
func (a *app) warnOfAdditions(p *access.Policy) error {
	for _, one := range p.Additions() {
		if _, err := fmt.Fprintf(a.stdout, "warning: watches.%s.allow: %s to everybody who holds its role\n", one.Watch, one); err != nil {
			return err
		}
	}
	return nil
}

// warnOfDerived says which counts and windows tell more than their readers may see of what is counted or sorted.
func (a *app) warnOfDerived(c *config.Config) error {
	watches := slices.Clone(c.Watches)
	for _, t := range c.Templates {
		w := t.Sample()
		w.Name = t.Name
		watches = append(watches, w)
	}
	for _, w := range watches {
		is := "counted"
		switch {
		case w.Grouping != nil:
		case isWindow(w.Definition):
			is = "sorted"
		default:
			continue
		}
		roles, of := c.Unseen(w)
		for _, role := range roles {
			if _, err := fmt.Fprintf(a.stdout, "warning: watches.%s: all of %s is %s, and no rule of %s lets the role %s read all of it\n", w.Name, of[0], is, strings.Join(of, " or "), role); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkText returns what is wrong in a configuration that is not in a file yet.
func (a *app) checkText(file string, text []byte) error {
	c, err := config.Parse(file, text, config.Environment{Getenv: a.inserted.Getenv})
	if err != nil {
		return err
	}
	return makeable(c)
}

// count returns a number of things, in words.
func count(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// makeable makes the source of each watch, and of one of each template, as serve does, and
// closes it before it connects to anything. This finds keys that do not fit together.
func makeable(c *config.Config) error {
	u := newUpstreams(slog.New(slog.DiscardHandler), nil, nil, nil)
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

// provided connects to databases. It reports what they lack for the watches of their tables.
func provided(ctx context.Context, c *config.Config) error {
	var errs []error
	for _, w := range c.Watches {
		s, err := sourceOf(c, w)
		if err != nil || s.Type != config.Postgres {
			continue // a view, or a watch of something else
		}
		database, err := postgres.New(s.Postgres)
		if err == nil {
			err = database.Check(ctx, w.Postgres)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w", w.Name, err))
		}
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
	s.Store.Path = "" // a gateway may have the file open
	one, err := u.source(s, w, "", u.logger)
	if err == nil && one.close != nil {
		one.close()
	}
	return err
}

// canOptions are the flags of "config can".
type canOptions struct {
	config string
	as     string
	value  string
}

func (a *app) canCommand() *cobra.Command {
	var o canOptions
	c := &cobra.Command{
		Use:   "can --config FILE WATCH [KEY]",
		Short: "Explain what somebody may do with a watch, or with one resource",
		Long: `Explain what somebody may do with a watch, or with one resource: which roles they
hold, and which rule decides and why. Only the configuration is read; nothing is
connected to.

--as names a file with who asks, as JSON. Without it, nobody in particular asks.

  {"name":"ann","issuer":"https://idp.example.com","mechanism":"jwt",
   "groups":["staff"],"claims":{"tenant":"acme"}}

With KEY, --value names a file with the value of the resource, as JSON. It is
explained whether it may be read, written again with this value, and deleted. Its
revision counts as 1.`,
		Example: `  watchtide config can --config gateway.yaml --as ann.json orders
  watchtide config can --config gateway.yaml --as ann.json orders o-17 --value order.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error { return a.can(o, args) },
	}
	c.Flags().StringVar(&o.config, "config", "", "the configuration `file`")
	c.Flags().StringVar(&o.as, "as", "", "a JSON `file` with who asks")
	c.Flags().StringVar(&o.value, "value", "", "a JSON `file` with the value of the resource KEY")
	return c
}

// can runs "config can".
func (a *app) can(o canOptions, args []string) error {
	switch {
	case o.config == "":
		return usageError("want --config FILE")
	case (o.value != "") != (len(args) == 2):
		return usageError("want KEY and --value FILE together, or neither")
	}
	c, err := config.Load(o.config, config.Environment{Getenv: a.inserted.Getenv})
	if err != nil {
		return err
	}
	if c.Policy == nil {
		return fmt.Errorf("%s: there are no roles and no rules of access", o.config)
	}
	entry, err := entryOf(c, args[0])
	if err != nil {
		return err
	}
	who, err := Principal(o.as)
	if err != nil {
		return err
	}
	var r *stream.Resource
	key := ""
	if len(args) == 2 {
		key = args[1]
		if r, err = Resource(key, o.value); err != nil {
			return err
		}
	}
	text := permissionText(args[0], r, c.Policy.Explain(who, entry, key, r))
	_, err = a.stdout.Write(escaped([]byte(text)))
	return err
}

// entryOf returns the name of the entry of the configuration that has a watch.
func entryOf(c *config.Config, watch string) (string, error) {
	var names []string
	for _, w := range c.Watches {
		if w.Name == watch {
			return watch, nil
		}
		names = append(names, w.Name)
	}
	for _, t := range c.Templates {
		if t.Match(watch) {
			return t.Name, nil
		}
	}
	return "", fmt.Errorf("there is no watch %q; %s", watch, suggest.Sentence(watch, names))
}
