package commands

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/watchtide/watchtide/access"
)

// newTokenCommand returns the command token, which makes static tokens. usage makes an error of a
// wrong command line.
func newTokenCommand(stdout io.Writer, usage func(format string, args ...any) error) *cobra.Command {
	group := &cobra.Command{
		Use:   "token",
		Short: "Make static tokens",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("want a command: token new NAME")
		},
	}
	var groups []string
	made := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token, and its line for the tokens file",
		Long: `Make a token for the principal NAME. The first line of the output is the token,
which nothing else keeps: whoever has it can ask as NAME. The second line is for
the file that auth.tokens_file names, and is not secret: it has a hash of the token.`,
		Args: func(_ *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return usage("want the name of a principal: token new NAME")
			case 1:
				return nil
			}
			return usage("want one name, and got %q: each token is of one principal; groups are given as --groups GROUP,GROUP", args)
		},
		RunE: func(_ *cobra.Command, args []string) error { return newToken(stdout, args[0], groups) },
	}
	made.Flags().StringSliceVar(&groups, "groups", nil, "the `groups` of the principal, separated by commas")
	group.AddCommand(made)
	return group
}

func newToken(stdout io.Writer, name string, groups []string) error {
	secret, line, err := access.NewToken(name, groups)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\n%s\n", secret, line)
	return err
}

// newKeyCommand returns the command key, which makes keys for sessions and tickets. usage is as for
// Token.
func newKeyCommand(stdout io.Writer, usage func(format string, args ...any) error) *cobra.Command {
	group := &cobra.Command{
		Use:   "key",
		Short: "Make keys for sessions and tickets",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("want a command: key new")
		},
	}
	group.AddCommand(&cobra.Command{
		Use:   "new",
		Short: "Make the content of a file of auth.key_files",
		Long: `Make a key for auth.key_files: 32 random bytes in hexadecimal. All replicas need
the same one, in a file that no other user can read:

  (umask 077; watchtide key new > sessions.key)`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(stdout, access.NewSealKey())
			return err
		},
	})
	return group
}
