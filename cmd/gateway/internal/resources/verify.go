package resources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/connect"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

// ErrDiffers means that two states are not the same.
var ErrDiffers = errors.New("they differ")

// mostDiffering is how many keys that differ are printed on a terminal.
const mostDiffering = 20

func (c Console) verify() *cobra.Command {
	f := connect.New(c.Agent)
	var o terminal.Flag
	var v client.View
	var with string
	var within time.Duration
	verify := &cobra.Command{
		Use:   "verify WATCH",
		Short: "Verify by digest that what a gateway sends is what it has, or what another one has",
		Long: `Verify by digest that what a gateway sends of a watch is what it has: the keys, and
the text of each value.

With --with, the watch is followed at two gateways until they have the same. Two
replicas that are sent changes at the same rate are equal at some moment; if they
are not within --within, the keys that differ then are printed. The two need not
have the same order of revisions.

` + connect.NarrowingHelp + "\n\n" + connect.Help + "\n\n" + c.ExitCodes,
		Example: `  watchtide verify services
  watchtide verify services --server http://replica-1:8080 --with http://replica-2:8080`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.CompleteWatchAndKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := connect.CheckNarrowing(v, c.Terminal); err != nil {
				return err
			}
			format, err := o.Format(c.otherwise("text", terminal.JSON))
			if err != nil {
				return c.Usage("%w", err)
			}
			return c.ask(cmd, f, v, func(ctx context.Context, s *client.Client) error {
				ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %s", within))
				defer cancel()
				if with == "" {
					found, err := s.Verify(ctx, args[0], v)
					return c.printVerified(found, err, format, "what was sent is what the gateway has")
				}
				other, err := f.ConnectTo(with)
				if err != nil {
					return c.Usage("--with: %w", err)
				}
				defer other.Close()
				found, err := s.Compare(ctx, other, args[0], v)
				return c.printVerified(found, err, format, "both gateways have the same")
			})
		},
	}
	f.Register(verify)
	connect.RegisterNarrowing(verify, &v)
	o.Register(verify, "text", terminal.JSON)
	verify.Flags().StringVar(&with, "with", "", "compare with the gateway at this `URL`")
	verify.Flags().DurationVar(&within, "within", 30*time.Second, "how long it may take")
	return verify
}

func (c Console) printVerified(v client.Verification, err error, format terminal.Format, equal string) error {
	if err != nil {
		return err
	}
	if format.Name == terminal.JSON {
		v.Differing = append([]string{}, v.Differing...)
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := format.Print(c.Stdout, text, c.Terminal); err != nil {
			return err
		}
	} else {
		c.printDiffering(v, equal)
	}
	if len(v.Differing) > 0 {
		return fmt.Errorf("watch %s: %d resources: %w", v.Watch, len(v.Differing), ErrDiffers)
	}
	return nil
}

func (c Console) printDiffering(v client.Verification, equal string) {
	if len(v.Differing) == 0 {
		fmt.Fprintf(c.Stdout, "%s: %d resources at revision %s: %s (%s)\n", v.Watch, v.Count, v.Revision, equal, v.Digest)
		return
	}
	for i, key := range v.Differing {
		if i == mostDiffering && c.isTerminal() {
			fmt.Fprintf(c.Stdout, "… and %d more\n", len(v.Differing)-i)
			break
		}
		fmt.Fprintf(c.Stdout, "%s\n", terminal.Escaped([]byte(key)))
	}
}
