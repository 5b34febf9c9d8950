package resources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/connect"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

// maxValueBytes is the most that a gateway accepts of any source.
const maxValueBytes = 16 << 20

// putOptions are the flags of put.
type putOptions struct {
	gateway  *connect.Flags
	output   terminal.Flag
	file     string
	isText   bool
	revision ifRevision
	ifAbsent bool
}

func (c Console) put() *cobra.Command {
	o := putOptions{gateway: connect.New(c.Agent)}
	put := &cobra.Command{
		Use:   "put WATCH KEY [VALUE]",
		Short: "Write a resource",
		Long: `Write a resource of a watch that can be written, and print its new revision.

The value is JSON: that of the command line, of the file that --file names, or without
both that of standard input. With --text it is a text, and is stored as a JSON string.

--if-revision and --if-absent make the write conditional, so that no other write is lost:
if the resource has changed meanwhile, nothing is written and the exit code is 5.

With -o json, yaml or jsonpath the resource is printed as it was stored.

` + connect.Help + "\n\n" + c.ExitCodes,
		Example: `  watchtide put notes shopping/milk '{"litres":2}'
  watchtide put notes greeting --text 'good morning'
  watchtide put notes config --file config.json
  jq -n '{at: now}' | watchtide put notes beat
  watchtide put notes shopping/milk '{"litres":1}' --if-revision 7`,
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: o.gateway.CompleteWatchAndKey,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.doPut(cmd, &o, args) },
	}
	o.gateway.Register(put)
	o.revision.register(put)
	o.output.Register(put, terminal.JSON, terminal.YAML, terminal.JSONPath)
	put.Flags().StringVar(&o.file, "file", "", "a `FILE` with the value; - is standard input")
	put.Flags().BoolVar(&o.isText, "text", false, "the value is a text, not JSON")
	put.Flags().BoolVar(&o.ifAbsent, "if-absent", false, "write only if there is no such resource; otherwise the exit code is 5")
	_ = put.MarkFlagFilename("file")
	return put
}

func (c Console) doPut(cmd *cobra.Command, o *putOptions, args []string) error {
	format, err := o.output.Format("")
	if err != nil {
		return c.Usage("%w", err)
	}
	condition, err := o.condition()
	if err != nil {
		return c.Usage("%w", err)
	}
	if len(args) == 3 && o.file != "" {
		return c.Usage("want VALUE or --file, not both")
	}
	return c.ask(cmd, o.gateway, client.View{}, func(ctx context.Context, s *client.Client) error {
		value, err := c.value(ctx, o, args[2:])
		if err != nil {
			return err
		}
		stored, err := s.Put(ctx, args[0], args[1], value, condition)
		if err != nil {
			return err
		}
		return c.printStored(stored, format)
	})
}

func (o *putOptions) condition() (client.Condition, error) {
	condition, err := o.revision.condition()
	if o.ifAbsent && condition.Revision != "" {
		return condition, errors.New("want --if-revision or --if-absent, not both")
	}
	condition.Absent = o.ifAbsent
	return condition, err
}

// value returns the value to write, as JSON.
func (c Console) value(ctx context.Context, o *putOptions, args []string) ([]byte, error) {
	raw, err := c.raw(ctx, o, args)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the value: %w", err)
	case len(raw) > maxValueBytes:
		return nil, fmt.Errorf("the value has more than %d bytes", maxValueBytes)
	case !utf8.Valid(raw):
		return nil, errors.New("the value is not UTF-8: other bytes are written in base64, in a JSON string")
	case o.isText:
		return quoted(string(raw))
	case !json.Valid(raw):
		var ignored any
		return nil, fmt.Errorf("the value is not JSON: %w; a text needs --text", json.Unmarshal(raw, &ignored))
	}
	return raw, nil
}

// quoted returns a text as a JSON string, without escapes that it does not need.
func quoted(text string) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(text)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// raw returns the value as it was given.
func (c Console) raw(ctx context.Context, o *putOptions, args []string) ([]byte, error) {
	if len(args) > 0 {
		return []byte(args[0]), nil
	}
	if o.file == "" || o.file == "-" {
		return readValue(ctx, c.Stdin)
	}
	f, err := os.Open(o.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readValue(ctx, f)
}

// readValue reads one byte more than a value may have, at most. If ctx ends first, the goroutine
// that reads stays behind: a read of a terminal or of a pipe cannot be ended.
func readValue(ctx context.Context, from io.Reader) ([]byte, error) {
	type result struct {
		value []byte
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := io.ReadAll(io.LimitReader(from, maxValueBytes+1))
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// printStored prints the revision, or in a form the resource.
func (c Console) printStored(stored json.RawMessage, format terminal.Format) error {
	if format.Name != "" {
		return format.Print(c.Stdout, stored, c.Terminal)
	}
	var r client.Resource
	if err := json.Unmarshal(stored, &r); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.Stdout, r.Revision)
	return err
}
