package resources

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/connect"
)

func (c Console) delete() *cobra.Command {
	f := connect.New(c.Agent)
	var r ifRevision
	remove := &cobra.Command{
		Use:   "delete WATCH KEY",
		Short: "Delete a resource",
		Long: `Delete a resource of a watch that can be written. It prints deleted, or absent if there
was no such resource, which is no error.

With --if-revision, a resource that has changed meanwhile is left alone, and the exit code
is 5; so it is if the resource is gone.

` + connect.Help + "\n\n" + c.ExitCodes,
		Example: `  watchtide delete notes shopping/milk
  watchtide delete notes shopping/milk --if-revision 7`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: f.CompleteWatchAndKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			condition, err := r.condition()
			if err != nil {
				return c.Usage("%w", err)
			}
			return c.ask(cmd, f, client.View{}, func(ctx context.Context, s *client.Client) error {
				deleted, err := s.Delete(ctx, args[0], args[1], condition)
				if err != nil {
					return err
				}
				return c.printDeleted(deleted)
			})
		},
	}
	f.Register(remove)
	r.register(remove)
	return remove
}

func (c Console) printDeleted(deleted bool) error {
	word := "absent"
	if deleted {
		word = "deleted"
	}
	_, err := fmt.Fprintln(c.Stdout, word)
	return err
}
