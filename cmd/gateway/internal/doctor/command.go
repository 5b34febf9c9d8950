package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/cmd/gateway/internal/connect"
)

// Process is what the command needs of the process in which it runs.
//
// Static after construction.
type Process struct {
	Stdout, Stderr io.Writer
	// Terminal reports whether Stderr is a terminal.
	Terminal bool
	// Escape escapes a text for a terminal.
	Escape func([]byte) []byte
	// UntilSignal returns a context that ends with a signal. stop releases it.
	UntilSignal func(context.Context) (_ context.Context, stop func())
	// Usage returns an error of a wrong command line.
	Usage func(format string, args ...any) error
	// TimedOut returns an error with the exit code of a command whose time is over.
	TimedOut func(error) error
}

// errTimeout is why a context ended: --timeout has passed.
var errTimeout = errors.New("--timeout is over")

type options struct {
	gateway *connect.Flags
	origin  string
	watch   string
	state   string
	output  string
	wait    time.Duration
	timeout time.Duration
}

// Command returns the command doctor.
func Command(p Process) *cobra.Command {
	o := options{gateway: connect.New("watchtide-doctor")}
	c := &cobra.Command{
		Use:   "doctor [URL | --state DIR]",
		Short: "Find what is wrong on the way to a gateway, or with its journal",
		Long: `Find what is wrong on the way between this machine and a gateway, as a browser
meets it: proxies that hold back streams, cut them off, compress them or hide their
clients, certificates, clocks, replicas between which streams do not resume. URL is
the one that browsers use; it may stand in the place of --server.

Each line is a finding: ok, problem or unknown; what was examined; what was found;
and for a problem, how to mend it.

A silent stream is observed for as long as --wait says, which finds time-outs that are
no longer. Nothing is written to the gateway.

With --state, the folder of a journal is examined instead, on the machine of the
gateway: run it as the user that runs the gateway. Nothing is changed there.

` + connect.Help + `

Exit codes:
  0    all is well
  1    there are problems
  2    the command line is wrong
  3    --timeout is over, and what was found until then is printed
  130  interrupted; 143 after SIGTERM`,
		Example: `  watchtide doctor https://events.example.com
  watchtide doctor https://events.example.com --origin https://app.example.com
  watchtide doctor https://events.example.com --token-file token --wait 5m --timeout 7m
  watchtide doctor --context prod --header 'X-Tenant: acme'
  watchtide doctor --state /var/lib/watchtide/state
  watchtide doctor https://events.example.com -o json | jq '.findings[] | select(.result == "problem")'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.at(args); err != nil {
				return p.Usage("%w", err)
			}
			if cmd.Flags().Changed("state") {
				return p.runState(&o, args)
			}
			return p.run(cmd.Context(), &o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.gateway.Register(c)
	c.Flags().StringVar(&o.origin, "origin", "", "the `ORIGIN` of pages that read from the gateway, such as https://app.example.com")
	c.Flags().StringVar(&o.watch, "watch", "", "the `WATCH` whose streams are used (the first one that is in sync)")
	c.Flags().StringVar(&o.state, "state", "", "examine the `DIR` of a journal (state.dir in the configuration) instead of the way to a gateway")
	c.Flags().StringVarP(&o.output, "output", "o", "text", "`FORM` of the findings: text or json")
	c.Flags().DurationVar(&o.wait, "wait", 0, "observe a silent stream for this `TIME`, at most 5m (two and a half heartbeats, and at least 35s)")
	c.Flags().DurationVar(&o.timeout, "timeout", 3*time.Minute, "end after this `TIME`, with exit code 3")
	_ = c.MarkFlagDirname("state")
	_ = c.RegisterFlagCompletionFunc("origin", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("watch", o.completeWatches)
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// at names the gateway by the argument, if there is one.
func (o *options) at(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return o.gateway.At(args[0])
}

func (o *options) completeWatches(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if o.at(args) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.gateway.CompleteWatches(c, args, begun)
}

func (p Process) check(o *options) error {
	switch {
	case o.output != "text" && o.output != "json":
		return p.Usage("--output %q: want text or json", o.output)
	case o.timeout <= 0:
		return p.Usage("--timeout %v: want more than 0", o.timeout)
	case o.wait >= o.timeout:
		return p.Usage("--wait %v: want less than --timeout, %v", o.wait, o.timeout)
	}
	return nil
}

func (p Process) run(ctx context.Context, o *options) error {
	if err := p.check(o); err != nil {
		return err
	}
	url, how, err := o.gateway.Find()
	if err != nil {
		return p.Usage("%w", err)
	}
	waiting := &countdown{out: p.Stderr, shown: p.Terminal, escape: p.Escape}
	d := diagnosis{URL: url, Findings: []Finding{}, process: p, waiting: waiting, text: o.output == "text"}
	e, err := New(Options{
		URL: url, Token: how.Token, Header: how.Header, TLS: how.TLS,
		Origin: o.origin, Watch: o.watch, Wait: o.wait, Found: d.add, Doing: waiting.begin,
	})
	if err != nil {
		return p.Usage("%w", err)
	}
	ctx, stop := p.UntilSignal(ctx)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, errTimeout)
	defer cancel()
	err = e.Run(ctx)
	waiting.end()
	return d.verdict(err)
}

// runState examines a folder, and no gateway.
func (p Process) runState(o *options, args []string) error {
	switch err := p.check(o); {
	case err != nil:
		return err
	case len(args) > 0:
		return p.Usage("want a URL or --state, and not both")
	case o.state == "":
		return p.Usage("--state: want a folder")
	}
	d := diagnosis{State: o.state, Findings: []Finding{}, process: p, waiting: &countdown{out: p.Stderr, escape: p.Escape}, text: o.output == "text"}
	for _, f := range ExamineState(o.state) {
		d.add(f)
	}
	return d.verdict(nil)
}

// diagnosis is all that was found. The goroutine of the command owns it.
type diagnosis struct {
	URL      string    `json:"url,omitempty"`
	State    string    `json:"state,omitempty"`
	Findings []Finding `json:"findings"`

	process Process
	waiting *countdown
	text    bool
	failure error // of the output
}

func (d *diagnosis) add(f Finding) {
	d.Findings = append(d.Findings, f)
	if !d.text {
		return
	}
	d.waiting.end()
	line := fmt.Sprintf("%-8s %-12s %s", f.Result, f.Check, f.Found)
	if f.Mend != "" {
		line += ". To mend it: " + f.Mend
	}
	_, err := fmt.Fprintf(d.process.Stdout, "%s\n", d.process.Escape([]byte(strings.ReplaceAll(line, "\n", " "))))
	d.failure = errors.Join(d.failure, err)
}

// verdict prints what was not printed yet, and returns the error with the exit code.
func (d *diagnosis) verdict(err error) error {
	if !d.text {
		text, _ := json.Marshal(d) // texts: cannot fail
		_, failed := fmt.Fprintf(d.process.Stdout, "%s\n", d.process.Escape(text))
		d.failure = errors.Join(d.failure, failed)
	}
	problems := 0
	for _, f := range d.Findings {
		if f.Result == Problem {
			problems++
		}
	}
	switch {
	case errors.Is(err, errTimeout):
		return d.process.TimedOut(fmt.Errorf("%w before all was examined", errTimeout))
	case err != nil || d.failure != nil:
		return errors.Join(err, d.failure)
	case problems == 1:
		return errors.New("there is a problem")
	case problems > 1:
		return fmt.Errorf("there are %d problems", problems)
	}
	return nil
}
