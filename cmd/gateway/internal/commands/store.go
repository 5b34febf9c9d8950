package commands

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/watchtide/watchtide/stream/store"
)

func (a *app) storeCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "store",
		Short: "Check, export, import and compact the files of stores",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("want a command: store check FILE, store compact FILE, store export FILE, or store import FILE")
		},
	}
	group.AddCommand(&cobra.Command{
		Use:   "check FILE",
		Short: "Read all of a file, and say what it has or what is damaged",
		Long: `Read all of the file of a store, and say what it has, or which page or key is
damaged. It changes nothing. The gateway must have been stopped, or the file be a
copy.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.checkStore(args[0]) },
	}, &cobra.Command{
		Use:   "compact FILE",
		Short: "Rewrite a file without what was deleted or replaced",
		Long: `Rewrite the file of a store, so that no byte of what was deleted or replaced is
left in it. It is checked before, and replaced when the new one is whole: there must
be room for both. Revisions and epochs stay. The gateway must have been stopped.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			before, after, err := store.Compact(args[0])
			if err == nil {
				_, err = fmt.Fprintf(a.stdout, "%s: %d bytes, before %d\n", args[0], after, before)
			}
			return err
		},
	}, a.storeExportCommand(), &cobra.Command{
		Use:   "import FILE",
		Short: "Make a file from an export on stdin",
		Long: `Make the file of a store from what export wrote, on stdin. There must be no file yet,
and there is none after an error. Revisions stay, and go on from the newest one.
All watches begin new epochs, so that clients load them once.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			n, err := store.Import(args[0], a.stdin)
			if err == nil {
				_, err = fmt.Fprintf(a.stdout, "%s: %s\n", args[0], count(n, "resource", "resources"))
			}
			return err
		},
	})
	return group
}

func (a *app) checkStore(path string) error {
	r, err := store.Check(path)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "WATCH\tRESOURCES\tBYTES\tDELETES\tHORIZON\tEPOCH")
	for _, one := range r.Watches {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", one.Name, one.Resources, one.Bytes, one.Deletes, one.Horizon, one.Epoch)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: ok: revision %d, %d bytes, of which %d are free\n", path, r.Revision, r.FileBytes, r.FreeBytes)
	return err
}
