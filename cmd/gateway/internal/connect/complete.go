package connect

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
)

// completionTime is how long a shell may wait for names.
const completionTime = time.Second

// CompleteWatches offers the names of the gateway's watches.
func (f *Flags) CompleteWatches(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return f.complete(c, func(ctx context.Context, s *client.Client) (names []string) {
		watches, _ := s.Watches(ctx) // a shell has no place for an error
		for _, w := range watches {
			switch about := w.Source + ", " + string(w.State); {
			case !typeable(w.Name):
			case typeable(about):
				names = append(names, cobra.CompletionWithDesc(w.Name, about))
			default:
				names = append(names, w.Name)
			}
		}
		return names
	})
}

// CompleteWatchAndKey offers the watches, then the keys of the one that was chosen.
func (f *Flags) CompleteWatchAndKey(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return f.CompleteWatches(c, args, begun)
	case 1:
		return f.complete(c, func(ctx context.Context, s *client.Client) []string {
			keys, _ := s.Keys(ctx, args[0], begun)
			return slices.DeleteFunc(keys, func(key string) bool { return !typeable(key) })
		})
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// complete asks the gateway for names, and offers none if it does not answer in time.
func (f *Flags) complete(c *cobra.Command, ask func(context.Context, *client.Client) []string) ([]string, cobra.ShellCompDirective) {
	s, err := f.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(c.Context(), completionTime)
	defer cancel()
	return ask(ctx, s), cobra.ShellCompDirectiveNoFileComp
}

// typeable reports whether a shell can show and complete a text that a gateway sent: a line of
// a completion is one name, and what a terminal interprets must not reach it.
func typeable(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) })
}
