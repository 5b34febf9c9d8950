package connect

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
)

// parsed returns the Source of a command line.
func parsed(t *testing.T, args ...string) *TokenSource {
	t.Helper()
	s, flags := &TokenSource{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.Register(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const here = "http://127.0.0.1:8080"

func TestThereMayBeNoToken(t *testing.T) {
	t.Setenv(TokenVariable, "")
	s := parsed(t)
	if token, err := s.For("http://example.com"); token != nil || err != nil {
		t.Errorf("got a token, or %v", err)
	}
	if got := s.Advice(); got != "want --token-file FILE, or a token in WATCHTIDE_TOKEN" {
		t.Error(got)
	}
}

func TestTheFileGoesBeforeTheVariable(t *testing.T) {
	t.Setenv(TokenVariable, "of-the-variable")
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "of-the-file\r\n")
	for want, args := range map[string][]string{"of-the-variable": nil, "of-the-file": {"--token-file", file}} {
		s := parsed(t, args...)
		token, err := s.For(here)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := token(t.Context()); got != want || err != nil {
			t.Errorf("%q: got %q, %v", args, got, err)
		}
		if !strings.Contains(s.Advice(), s.where()) {
			t.Error(s.Advice())
		}
	}
}

// A file is read again, but what can be read only once is kept.
func TestTheFileIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "first")
	token, err := parsed(t, "--token-file", file).For(here)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "second")
	if got, err := token(t.Context()); got != "second" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	os.Remove(file)
	if got, err := token(t.Context()); got != "" || err == nil || !strings.Contains(err.Error(), "token file") {
		t.Errorf("without the file: got %q, %v", got, err)
	}

	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- os.WriteFile(file, []byte("once\n"), 0) }()
	token, err = parsed(t, "--token-file", file).For(here)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := token(t.Context()); got != "once" || err != nil {
		t.Errorf("from a pipe: got %q, %v", got, err)
	}
}

func TestATokenThatCannotBeSent(t *testing.T) {
	for text, want := range map[string]string{
		"": "printable ASCII", "\n": "printable ASCII", "sEcReT 1": "printable ASCII", "sEcReT\nX: y": "printable ASCII", "sEcReT\xff": "printable ASCII",
		"sEcReT" + strings.Repeat("x", maxTokenBytes): "more than 65536 bytes",
	} {
		file := filepath.Join(t.TempDir(), "token")
		write(t, file, text)
		_, err := parsed(t, "--token-file", file).For(here)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "sEcReT") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Only this machine is sent a token over plain HTTP, and not a name that merely looks so.
func TestATokenIsNotSentInTheClear(t *testing.T) {
	t.Setenv(TokenVariable, "tOkEn1")
	for server, want := range map[string]bool{
		"https://example.com": true, "https://10.0.0.1:8443/path": true,
		here: true, "http://localhost": true, "http://[::1]:8080": true, "http://a.localhost:1": true, "http://LOCALHOST./": true,
		"http://example.com": false, "http://10.0.0.1:8080": false, "http://[2001:db8::1]": false, "http://0.0.0.0:8080": false,
		"http://localhost.example.com": false, "http://127.0.0.1.example.com": false, "http://127.0.0.1@example.com": false, "http://xlocalhost": false,
	} {
		_, err := parsed(t).For(server)
		if (err == nil) != want {
			t.Errorf("%s: got %v", server, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "--insecure-token") || strings.Contains(err.Error(), "tOkEn1")) {
			t.Error(err)
		}
		if _, err := parsed(t, "--insecure-token").For(server); err != nil {
			t.Errorf("%s, insecure: %v", server, err)
		}
	}
}
