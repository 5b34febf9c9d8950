package connect

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/cmd/gateway/internal/terminal"
)

// command is the group of commands. Static.
type command struct {
	out      io.Writer
	terminal terminal.Terminal
	usage    func(format string, args ...any) error
}

// ContextsCommand returns the command context, which lists and changes contexts. usage makes an error
// of a wrong command line.
func ContextsCommand(out io.Writer, t terminal.Terminal, usage func(format string, args ...any) error) *cobra.Command {
	c := command{out: out, terminal: t, usage: usage}
	group := &cobra.Command{
		Use:   "context",
		Short: "Name gateways, and how to authenticate there",
		Long: `Name gateways, and how to authenticate there, as contexts. A command uses the one
that --context names, or else the current one, unless --server or the environment
variable WATCHTIDE_SERVER names a gateway.

The contexts are in watchtide/contexts.yaml in the folder for configurations, which is
~/.config unless XDG_CONFIG_HOME says otherwise (on macOS ~/Library/Application Support,
on Windows %AppData%), or in the file that WATCHTIDE_CONTEXTS names. Only its owner can
read it. It has the names of files with tokens and keys, not what is in them; headers
are in it with their values.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("want a command: context list, use, set, show or delete")
		},
	}
	group.AddCommand(c.list(), c.use(), c.set(), c.show(), c.delete())
	return group
}

// CompleteContexts offers the names of the contexts.
func CompleteContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	f, err := LoadContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, name := range f.Names() {
		out = append(out, cobra.CompletionWithDesc(name, f.Contexts[name].Server))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeOne offers the names for the only argument.
func completeOne(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return CompleteContexts(c, args, begun)
}

// entry is a context as it is printed: without the values of headers, which may be secrets.
type entry struct {
	Name      string   `json:"name"`
	Current   bool     `json:"current"`
	Server    string   `json:"server"`
	TokenFile string   `json:"token_file,omitempty"`
	CAFile    string   `json:"ca_file,omitempty"`
	CertFile  string   `json:"cert_file,omitempty"`
	KeyFile   string   `json:"key_file,omitempty"`
	Headers   []string `json:"headers,omitempty"`
}

func (f ContextsFile) entry(name string) entry {
	c := f.Contexts[name]
	return entry{name, name == f.Current, redacted(c.Server), c.TokenFile, c.CAFile, c.CertFile, c.KeyFile, slices.Sorted(maps.Keys(c.Headers))}
}

// redacted hides the password of a URL.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Redacted()
}

func (c command) list() *cobra.Command {
	var o terminal.Flag
	list := &cobra.Command{
		Use:   "list",
		Short: "List the contexts",
		Long:  "List the contexts. * marks the current one.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			format, err := o.Format(terminal.TableFormat)
			if err != nil {
				return c.usage("%w", err)
			}
			f, err := LoadContexts()
			if err != nil {
				return err
			}
			return c.printList(f, format)
		},
	}
	o.Register(list, terminal.TableFormat, terminal.JSON, terminal.YAML, terminal.JSONPath)
	list.ValidArgsFunction = cobra.NoFileCompletions
	return list
}

func (c command) printList(f ContextsFile, format terminal.Format) error {
	entries := []entry{}
	rows := [][]string{{" ", "NAME", "SERVER"}}
	for _, name := range f.Names() {
		e := f.entry(name)
		entries = append(entries, e)
		mark := ""
		if e.Current {
			mark = "*"
		}
		rows = append(rows, []string{mark, name, e.Server})
	}
	if format.Name == terminal.TableFormat {
		_, err := io.WriteString(c.out, terminal.Columns(rows))
		return err
	}
	document, err := json.Marshal(map[string]any{"contexts": entries})
	if err != nil {
		return err
	}
	return format.Print(c.out, document, c.terminal)
}

func (c command) show() *cobra.Command {
	var o terminal.Flag
	show := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Print a context, or the current one",
		Long:  "Print a context, or the current one. Of headers only the names are printed.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			format, err := o.Format(terminal.YAML)
			if err != nil {
				return c.usage("%w", err)
			}
			f, err := LoadContexts()
			if err != nil {
				return err
			}
			name := f.Current
			if len(args) > 0 {
				name = args[0]
			}
			if name == "" {
				return fmt.Errorf("no context is the current one: watchtide context use NAME chooses it")
			}
			if _, err := f.Get(name); err != nil {
				return err
			}
			document, err := json.Marshal(f.entry(name))
			if err != nil {
				return err
			}
			return format.Print(c.out, document, c.terminal)
		},
		ValidArgsFunction: completeOne,
	}
	o.Register(show, terminal.YAML, terminal.JSON, terminal.JSONPath)
	return show
}

func (c command) use() *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Make a context the current one",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := LoadContexts()
			if err != nil {
				return err
			}
			if _, err := f.Get(args[0]); err != nil {
				return err
			}
			f.Current = args[0]
			return f.save()
		},
		ValidArgsFunction: completeOne,
	}
}

func (c command) delete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a context",
		Long:  "Delete a context. If it is the current one, there is none after that.",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := LoadContexts()
			if err != nil {
				return err
			}
			if _, ok := f.Contexts[args[0]]; !ok {
				return fmt.Errorf("there is no context %q: %s", args[0], f.known())
			}
			delete(f.Contexts, args[0])
			if f.Current == args[0] {
				f.Current = ""
			}
			return f.save()
		},
		ValidArgsFunction: completeOne,
	}
}

// settings are the flags of "context set".
type settings struct {
	server, token, ca, cert, key string
	headers                      []string
}

func (c command) set() *cobra.Command {
	var s settings
	set := &cobra.Command{
		Use:   "set NAME",
		Short: "Make a context, or change one",
		Long: `Make a context, or change what the flags name of one. An empty value removes what
was there. The first context becomes the current one.

A name of a file counts from the current folder; the context has its full name.`,
		Example: `  watchtide context set prod --server https://events.example.com --token-file ~/.prod-token
  watchtide context set prod --header 'X-Tenant: acme' --header 'X-Old:'
  watchtide context use prod`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkName(args[0]); err != nil {
				return c.usage("%w", err)
			}
			f, err := LoadContexts()
			if err != nil {
				return err
			}
			changed, err := s.apply(f.Contexts[args[0]], cmd.Flags().Changed)
			if err != nil {
				return c.usage("%w", err)
			}
			if len(f.Contexts) == 0 {
				f.Current = args[0]
			}
			f.Contexts[args[0]] = changed
			return f.save()
		},
		ValidArgsFunction: completeOne,
	}
	flags := set.Flags()
	flags.StringVar(&s.server, "server", "", "`URL` of the gateway")
	flags.StringVar(&s.token, "token-file", "", "a `FILE` with the token to send")
	flags.StringVar(&s.ca, "ca-file", "", "a `FILE` with the certificates that sign that of the gateway, instead of those of the system")
	flags.StringVar(&s.cert, "cert-file", "", "a `FILE` with a client certificate")
	flags.StringVar(&s.key, "key-file", "", "a `FILE` with the key of the client certificate")
	flags.StringArrayVar(&s.headers, "header", nil, "a `HEADER` to send, as 'Name: value'; may be repeated. 'Name:' removes it")
	for _, name := range []string{"token-file", "ca-file", "cert-file", "key-file"} {
		_ = set.MarkFlagFilename(name)
	}
	_ = set.RegisterFlagCompletionFunc("server", cobra.NoFileCompletions)
	_ = set.RegisterFlagCompletionFunc("header", cobra.NoFileCompletions)
	return set
}

// apply returns the context with the flags that were given.
func (s settings) apply(c Context, given func(flag string) bool) (Context, error) {
	if given("server") {
		c.Server = s.server
	}
	if c.Server == "" {
		return c, fmt.Errorf("want --server URL")
	}
	for _, file := range []struct {
		flag, name string
		of         *string
	}{{"token-file", s.token, &c.TokenFile}, {"ca-file", s.ca, &c.CAFile}, {"cert-file", s.cert, &c.CertFile}, {"key-file", s.key, &c.KeyFile}} {
		if !given(file.flag) {
			continue
		}
		*file.of = ""
		if file.name == "" {
			continue
		}
		full, err := filepath.Abs(file.name)
		if err != nil {
			return c, err
		}
		*file.of = full
	}
	headers, err := ParseHeaders(s.headers)
	if err != nil {
		return c, err
	}
	c = c.With(Context{}) // a copy of the headers
	for name, value := range headers {
		if c.Headers[name] = value; value == "" {
			delete(c.Headers, name)
		}
	}
	return c, c.check()
}
