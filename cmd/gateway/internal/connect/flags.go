// Package connect finds the gateway that a command talks to, and how to authenticate there: from
// the flags of the command line, a context, or the environment. Contexts are named gateways, which one
// file keeps. It also has the flags that narrow a watch to a part of it.
package connect

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/watchtide/watchtide/client"
)

const (
	// Variable is the environment variable with the URL of the gateway.
	Variable = "WATCHTIDE_SERVER"
	// Default is the URL if nothing else names one.
	Default = "http://127.0.0.1:8080"
)

// Help describes the flags.
const Help = `The gateway is the one that --server or --context names; otherwise that of the environment
variable WATCHTIDE_SERVER, then that of the current context (see watchtide context), then
http://127.0.0.1:8080. The credentials of a context are sent to its own server only.

` + TokenHelp

// Flags are those of every command that talks to a gateway.
type Flags struct {
	// Static after construction.
	agent string

	// Static after the command line is parsed.
	server, context string
	headers         []string
	files           files
	token           TokenSource
}

// New returns flags. agent is the User-Agent of requests.
func New(agent string) *Flags { return &Flags{agent: agent} }

// Register adds the flags to a command.
func (f *Flags) Register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.server, "server", "", "`URL` of the gateway; unless set, "+Variable+" has it, or the current context (default "+Default+")")
	flags.StringVar(&f.context, "context", "", "`NAME` of the context that has the gateway, see watchtide context")
	flags.StringArrayVar(&f.headers, "header", nil, "a `HEADER` to send, as 'Name: value'; may be repeated")
	flags.StringVar(&f.files.ca, "ca-file", "", "a `FILE` with the certificates that sign that of the gateway, instead of those of the system")
	flags.StringVar(&f.files.cert, "cert-file", "", "a `FILE` with a client certificate; it is read again for each connection")
	flags.StringVar(&f.files.key, "key-file", "", "a `FILE` with the key of the client certificate")
	f.token.Register(flags)
	for _, name := range []string{"ca-file", "cert-file", "key-file", "token-file"} {
		_ = c.MarkFlagFilename(name)
	}
	_ = c.RegisterFlagCompletionFunc("server", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("header", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("context", CompleteContexts)
}

// Connect returns the gateway. No connection is made yet: an error is one of the command line,
// of the environment, or of a file that they name.
func (f *Flags) Connect() (*client.Client, error) {
	server, options, err := f.Find()
	if err != nil {
		return nil, err
	}
	return client.New(server, options)
}

// ConnectTo returns another gateway. The credentials of the context are not sent to it.
func (f *Flags) ConnectTo(server string) (*client.Client, error) {
	other := &Flags{agent: f.agent, server: server, headers: f.headers, files: f.files}
	other.token.file, other.token.insecure = f.token.file, f.token.insecure
	return other.Connect()
}

// Find returns the URL of the gateway, and how requests to it are made. Errors are those of
// Connect.
func (f *Flags) Find() (server string, options client.Options, err error) {
	c, err := f.choose()
	if err != nil {
		return "", options, err
	}
	options.Header = c.HTTPHeader()
	if options.Header.Get("User-Agent") == "" {
		options.Header.Set("User-Agent", f.agent)
	}
	if options.TLS, err = (files{c.CAFile, c.CertFile, c.KeyFile}).config(c.Server); err != nil {
		return "", options, err
	}
	f.token.UseFile(c.TokenFile)
	options.Token, err = f.token.For(c.Server)
	return c.Server, options, err
}

// At names the gateway by an argument, as --server does by a flag.
func (f *Flags) At(server string) error {
	if f.server != "" || f.context != "" {
		return errors.New("want the URL, --server or --context, and only one of them")
	}
	f.server = server
	return nil
}

// choose returns the context that the flags, the environment and the file of contexts make
// together. A flag replaces what the context has.
func (f *Flags) choose() (Context, error) {
	c, err := f.base()
	if err != nil {
		return c, err
	}
	given, err := ParseHeaders(f.headers)
	if err != nil {
		return c, err
	}
	return c.With(Context{CAFile: f.files.ca, CertFile: f.files.cert, KeyFile: f.files.key, Headers: given}), nil
}

// base returns the context without what only flags say.
func (f *Flags) base() (Context, error) {
	switch {
	case f.server != "" && f.context != "":
		return Context{}, errors.New("want --server or --context, not both: a context has credentials for its own server only")
	case f.server != "":
		return Context{Server: f.server}, nil
	case f.context == "" && os.Getenv(Variable) != "":
		return Context{Server: os.Getenv(Variable)}, nil
	}
	all, err := LoadContexts()
	switch {
	case f.context != "" && err != nil:
		return Context{}, err
	case f.context != "":
		return all.Get(f.context)
	case err != nil || all.Current == "":
		return Context{Server: Default}, err
	}
	c, err := all.Get(all.Current)
	if err != nil {
		return c, fmt.Errorf("the current context: %w", err)
	}
	return c, nil
}

// Refused adds advice to a refusal by the gateway.
func (f *Flags) Refused(err error) error {
	if errors.Is(err, client.ErrUnauthenticated) {
		return fmt.Errorf("%w; %s", err, f.token.Advice())
	}
	return err
}
