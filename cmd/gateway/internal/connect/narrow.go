package connect

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// NarrowingHelp describes the flags.
const NarrowingHelp = `--prefix, --keys, --labels, --filter and --fields narrow a watch at the server: only what is
asked for is sent. --filter is an expression in CEL (https://cel.dev) over

  key       string               the key of a resource
  value     dyn                  its value
  labels    map(string, string)  its labels
  revision  int                  the revision at which it last changed

A resource that lacks a member that the expression names is left out.`

// NarrowingMistake is an error of the command line: what one of the flags says is wrong.
type NarrowingMistake struct{ error }

// Unwrap returns what is wrong.
func (m NarrowingMistake) Unwrap() error { return m.error }

// RegisterNarrowing adds the flags to a command, which set v.
func RegisterNarrowing(c *cobra.Command, v *client.View) {
	c.Flags().StringVar(&v.Prefix, "prefix", "", "only keys that begin with `TEXT`")
	RegisterKeys(c, &v.Keys)
	c.Flags().StringVar(&v.Labels, "labels", "", "only resources whose labels match the `SELECTOR`, as with kubectl -l")
	c.Flags().StringVar(&v.Filter, "filter", "", "only resources for which the `CEL` expression is true")
	c.Flags().StringArrayVar(&v.Fields, "fields", nil, "only these `PATHS` of the values, with commas between them")
	for _, name := range []string{"prefix", "labels", "filter", "fields"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// RegisterKeys adds the flag --keys to a command, which sets keys.
func RegisterKeys(c *cobra.Command, keys *[]string) {
	c.Flags().Var((*keysFlag)(keys), "keys", "only these `KEYS`, with commas between them")
	_ = c.RegisterFlagCompletionFunc("keys", cobra.NoFileCompletions)
}

// RegisterFirst adds the flag --first to a command, which sets keys.
func RegisterFirst(c *cobra.Command, keys *[]string) {
	c.Flags().Var((*keysFlag)(keys), "first", "have these `KEYS` of the first watch before all others, with commas between them; they come again at their places")
	_ = c.RegisterFlagCompletionFunc("first", cobra.NoFileCompletions)
}

// keysFlag is a flag with keys, which may be repeated.
type keysFlag []string

// String implements pflag.Value.
func (f *keysFlag) String() string { return view.FormatKeys(*f) }

// Set implements pflag.Value.
func (f *keysFlag) Set(text string) error {
	keys, err := view.ParseKeys(text)
	*f = append(*f, keys...)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "keys, ")) // whoever calls says which flag it is
	}
	return nil
}

// Type implements pflag.Value.
func (f *keysFlag) Type() string { return "keys" }

// keyLists returns keys as the parameters of a view have them.
func keyLists(keys []string) []string {
	if len(keys) == 0 {
		return nil
	}
	return []string{view.FormatKeys(keys)}
}

// CheckNarrowing finds a Mistake before there is a connection, and shows its place on a terminal. What a
// filter may cost is for the server to say.
func CheckNarrowing(v client.View, t terminal.Terminal) error {
	switch {
	case v.Order != "" && v.Limit == 0:
		return NarrowingMistake{errors.New("--order: how many resources are wanted? Want --limit NUMBER too")}
	case v.Order == "" && v.Limit != 0:
		return NarrowingMistake{errors.New("--limit: it counts in an order: want --order PATHS too")}
	case v.Order == "" && v.Offset != 0:
		return NarrowingMistake{errors.New("--offset: it counts in an order: want --order PATHS too")}
	}
	_, err := definition(v)
	var bad *view.Error
	if !errors.As(err, &bad) {
		return err
	}
	flag := *bad
	flag.Parameter = "--" + bad.Parameter
	if bad.Needs != "" {
		flag.Needs = "--" + bad.Needs
	}
	return NarrowingMistake{fmt.Errorf("%w%s", &flag, t.Excerpt(textsOf(v)[bad.Parameter], bad.Offset))}
}

func definition(v client.View) (*view.Definition, error) {
	p := view.Params{Prefix: v.Prefix, Keys: keyLists(v.Keys), Labels: v.Labels, Filter: v.Filter, Order: v.Order, Limit: number(v.Limit), Offset: number(v.Offset), After: v.After, ValueSize: 1}
	if len(v.Fields) > 0 {
		p.Fields = []string{strings.Join(v.Fields, ",")}
	}
	return view.Parse(p)
}

// SortKey returns what the resources of a window are sorted by, with their keys; nil: v is no window.
func SortKey(v client.View) func(client.Resource) string {
	d, err := definition(v)
	if err != nil || v.Order == "" {
		return nil
	}
	return func(r client.Resource) string {
		return string(append(d.AppendSortKey(nil, stream.Resource{Value: r.Value}), r.ID()...))
	}
}

// textsOf returns the texts that narrow a watch, by parameter.
func textsOf(v client.View) map[string]string {
	return map[string]string{
		"prefix": v.Prefix, "keys": view.FormatKeys(v.Keys), "labels": v.Labels, "filter": v.Filter, "fields": strings.Join(v.Fields, ","),
		"order": v.Order, "limit": number(v.Limit), "offset": number(v.Offset),
	}
}

// NarrowingRefused makes a Mistake of the server's refusal of what a flag says, and shows its place on a
// terminal. Any other error is unchanged.
func NarrowingRefused(err error, v client.View, t terminal.Terminal) error {
	var p *client.Problem
	if !errors.As(err, &p) || p.Status != http.StatusBadRequest {
		return err
	}
	parameter, _, _ := strings.Cut(p.Parameter, ".")
	text, known := textsOf(v)[parameter]
	switch {
	case !known:
		return err
	case p.Column == 0:
		return NarrowingMistake{err}
	}
	return NarrowingMistake{fmt.Errorf("%w%s", err, t.Excerpt(text, p.Offset))}
}

// WindowHelp describes the flags of a window.
const WindowHelp = `--order and --limit show a part of the resources: the first ones, sorted by paths of their
values. A minus before a path makes its order descending.`

// RegisterWindow adds the flags of a window to a command, which set v.
func RegisterWindow(c *cobra.Command, v *client.View) {
	c.Flags().Var((*orderFlag)(&v.Order), "order", "sort by these `PATHS` of the values, with commas between them, and have the first ones only")
	c.Flags().Var(&numberFlag{&v.Limit, 1, view.MaxLimit}, "limit", "how many resources to have with --order, at most: a `NUMBER` from 1 to 1000")
	c.Flags().Var(&numberFlag{&v.Offset, 0, view.MaxOffset}, "offset", "how many resources come before the first one with --order: a `NUMBER`")
	for _, name := range []string{"order", "limit", "offset"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// orderFlag is a flag with an order, which is not empty.
type orderFlag string

// String implements pflag.Value.
func (f *orderFlag) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *orderFlag) Set(text string) error {
	if text == "" {
		return errors.New("want PATHS")
	}
	*f = orderFlag(text)
	return nil
}

// Type implements pflag.Value.
func (f *orderFlag) Type() string { return "order" }

// numberFlag is a flag with a number from least to most, which it sets.
type numberFlag struct {
	number      *int
	least, most int
}

// String implements pflag.Value.
func (f *numberFlag) String() string {
	if f.number == nil {
		return ""
	}
	return number(*f.number)
}

// Set implements pflag.Value.
func (f *numberFlag) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < int64(f.least) || n > int64(f.most) {
		return fmt.Errorf("want %d to %d", f.least, f.most)
	}
	*f.number = int(n)
	return nil
}

// Type implements pflag.Value.
func (f *numberFlag) Type() string { return "number" }

// number returns what a flag says; nothing: 0.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
