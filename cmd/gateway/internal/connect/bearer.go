package connect

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/headers"
)

// TokenVariable is the environment variable with a token, for commands without --token-file.
const TokenVariable = "WATCHTIDE_TOKEN"

// TokenHelp describes the flags.
const TokenHelp = `If the gateway asks for credentials, the token comes from the file that --token-file
names, or from the environment variable WATCHTIDE_TOKEN. The file is read again for each
request, so that the token can be replaced. Over plain HTTP a token is sent only to this
machine, because others on the way could read and use it; --insecure-token sends it
anyway.`

// maxTokenBytes is the maximum size of a file with a token: more than any server accepts in a
// header.
const maxTokenBytes = 64 << 10

// TokenSource is where a command finds its token.
type TokenSource struct {
	// Static after the command line is parsed.
	file     string
	insecure bool
	value    string // of the environment variable, if there is no file

	mu   sync.Mutex
	read string // guarded by mu: the token from a file that can be read only once
}

// Register adds the flags.
func (s *TokenSource) Register(f *pflag.FlagSet) {
	f.StringVar(&s.file, "token-file", "", "a `FILE` with the token to send; unless set, "+TokenVariable+" has it, if there is one")
	f.BoolVar(&s.insecure, "insecure-token", false, "send the token even over plain HTTP to another machine")
}

// UseFile names the file with the token unless --token-file does; "": none.
func (s *TokenSource) UseFile(name string) {
	if s.file == "" {
		s.file = name
	}
}

// For returns the function that returns the token for requests to the server at a valid URL;
// nil: there is none.
func (s *TokenSource) For(server string) (func(context.Context) (string, error), error) {
	if s.file == "" {
		s.value = os.Getenv(TokenVariable)
	}
	if s.file == "" && s.value == "" {
		return nil, nil
	}
	if !s.insecure && isPlainRemote(server) {
		return nil, fmt.Errorf("the token %s is not sent to another machine over plain HTTP, where everybody on the way could read it: want a URL that begins with https:, or --insecure-token", s.where())
	}
	if _, err := s.token(context.Background()); err != nil {
		return nil, err
	}
	return s.token, nil
}

// isPlainRemote reports whether others could read a request to a URL.
func isPlainRemote(server string) bool {
	u, err := url.Parse(server)
	return err == nil && u.Scheme == "http" && !headers.IsLoopback(net.JoinHostPort(u.Hostname(), "80"))
}

// where returns a name for the place of the token.
func (s *TokenSource) where() string {
	if s.file == "" {
		return "in " + TokenVariable
	}
	return "in the file " + s.file
}

// Advice says what to do about a server that does not accept the token.
func (s *TokenSource) Advice() string {
	if s.file == "" && s.value == "" {
		return "want --token-file FILE, or a token in " + TokenVariable
	}
	return "want another token " + s.where()
}

func (s *TokenSource) token(context.Context) (string, error) {
	if s.file == "" {
		return s.checked(s.value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read != "" {
		return s.read, nil
	}
	text, again, err := readFile(s.file)
	if err != nil {
		return "", fmt.Errorf("the token file: %w", err)
	}
	token, err := s.checked(strings.TrimRight(text, "\r\n"))
	if !again {
		s.read = token
	}
	return token, err
}

// readFile reads a file. again: it can be read again, so it is not a pipe, for instance.
func readFile(name string) (text string, again bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", false, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTokenBytes+1))
	return string(data), info.Mode().IsRegular(), err
}

// checked returns a token that can be sent. The error does not contain it.
func (s *TokenSource) checked(token string) (string, error) {
	switch {
	case len(token) > maxTokenBytes:
		return "", fmt.Errorf("the token %s has more than %d bytes", s.where(), maxTokenBytes)
	case !client.CanBeToken(token):
		return "", fmt.Errorf("the token %s cannot be sent: want one line of printable ASCII without spaces", s.where())
	}
	return token, nil
}
