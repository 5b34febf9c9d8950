package commands

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

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
	var expires string
	made := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token, and its line for the tokens file",
		Long: `Make a token for the principal NAME. The first line of the output is the token,
which nothing else keeps: whoever has it can ask as NAME. The second line is for
the file that auth.tokens_file names, and is not secret: it has a hash of the token.

With --expires the token ends by itself: after a time such as 90d or 12h, or at a time
such as 2027-01-31T00:00:00Z. Streams that are open then get a goodbye in the last 30
seconds before. To rotate a token, give its name a second line, and the first one an
expires=TIME.`,
		Example: `  watchtide token new ci --groups robots
  watchtide token new ci --groups robots --expires 90d`,
		Args: func(_ *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return usage("want the name of a principal: token new NAME")
			case 1:
				return nil
			}
			return usage("want one name, and got %q: each token is of one principal; groups are given as --groups GROUP,GROUP", args)
		},
		RunE: func(_ *cobra.Command, args []string) error { return newToken(stdout, usage, args[0], groups, expires) },
	}
	made.Flags().StringSliceVar(&groups, "groups", nil, "the `groups` of the principal, separated by commas")
	made.Flags().StringVar(&expires, "expires", "", "the `time` when the token ends, such as 90d, 12h or 2027-01-31T00:00:00Z (never)")
	_ = made.RegisterFlagCompletionFunc("expires", cobra.FixedCompletions([]string{"1d", "30d", "90d", "365d"}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder))
	group.AddCommand(made)
	return group
}

// newToken runs "token new". usage is as for newTokenCommand.
func newToken(stdout io.Writer, usage func(format string, args ...any) error, name string, groups []string, expires string) error {
	end, err := endOf(expires, time.Now())
	if err != nil {
		return usage("--expires: %v", err)
	}
	secret, line, err := access.NewTokenUntil(name, groups, end)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\n%s\n", secret, line)
	return err
}

// endOf reads when a token expires: a time, or how long after now. Empty: never.
func endOf(text string, now time.Time) (end time.Time, err error) {
	if text == "" {
		return end, nil
	}
	if end, err = time.Parse(time.RFC3339, text); err != nil {
		after, err := durationOf(text)
		if err != nil {
			return end, fmt.Errorf("want a time such as 90d, 12h or 2027-01-31T00:00:00Z (RFC 3339), and got %q", text)
		}
		end = now.Add(after)
	}
	if end = end.Truncate(time.Second); !end.After(now) {
		return end, fmt.Errorf("%s is not in the future", text)
	}
	return end, nil
}

// durationOf reads a duration, also one in days of 24 hours.
func durationOf(text string) (time.Duration, error) {
	days, found := strings.CutSuffix(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16) // 65,535 days are no overflow
	return time.Duration(n) * 24 * time.Hour, err
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
