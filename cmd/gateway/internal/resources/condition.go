package resources

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
)

// ifRevision is the flag --if-revision of a write.
type ifRevision struct{ text string }

func (r *ifRevision) register(c *cobra.Command) {
	c.Flags().StringVar(&r.text, "if-revision", "", "write only if the resource has this `REVISION`; otherwise the exit code is 5")
	_ = c.RegisterFlagCompletionFunc("if-revision", cobra.NoFileCompletions)
}

func (r *ifRevision) condition() (client.Condition, error) {
	if r.text == "" {
		return client.Condition{}, nil
	}
	n, err := strconv.ParseUint(r.text, 10, 64)
	switch {
	case err != nil:
		return client.Condition{}, fmt.Errorf("--if-revision %q: want a revision, as get and put print it", r.text)
	case n == 0:
		return client.Condition{}, errors.New("--if-revision 0: no resource has it; put --if-absent writes one that is not there")
	}
	return client.Condition{Revision: strconv.FormatUint(n, 10)}, nil
}
