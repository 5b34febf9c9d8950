package commands

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manualCommand returns a hidden command that writes the pages of all commands beside it.
func manualCommand(version string) *cobra.Command {
	return &cobra.Command{
		Use:    "manual FOLDER",
		Short:  "Write the manual pages",
		Long:   "Write the manual pages, one for each command, into a folder, which is made if it does not exist. The date in them is that of SOURCE_DATE_EPOCH, in seconds, or today.",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			header := &doc.GenManHeader{Section: "1", Source: "watchtide " + version, Manual: "Watchtide"}
			c.Root().DisableAutoGenTag = true
			return doc.GenManTree(c.Root(), header, args[0])
		},
	}
}
