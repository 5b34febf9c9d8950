package nats

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withToken configures a token.
func withToken(t *testing.T, token string) func(*Config) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(c *Config) { c.TokenFile = file }
}

// TestCredentialsStayWithTheConfiguredServers: a server may name others.
func TestCredentialsStayWithTheConfiguredServers(t *testing.T) {
	other := newScripted(t, nil)
	s := newScripted(t, func(s *scripted) {
		s.greet = func(p *peer) {
			p.send(s.info(`,"connect_urls":["` + other.addr() + `"]`))
			p.send("-ERR 'Authorization Violation'\r\n")
			p.Close()
		}
	})
	w := s.watch(withToken(t, "s3cr3t-t0ken"))
	w.wantError(t, "nats://"+s.addr())
	if sent := other.connected(); len(sent) > 0 {
		t.Errorf("a server that is not configured received %q", sent)
	}
}

// TestNoDowngrade: a server that must speak TLS and does not receives no credentials.
func TestNoDowngrade(t *testing.T) {
	for _, info := range []string{"", `,"tls_required":false,"tls_available":false`} {
		s := newScripted(t, func(s *scripted) { s.greet = func(p *peer) { p.send(s.info(info)) } })
		w := s.watch(withToken(t, "s3cr3t-t0ken"), func(c *Config) { c.URL = "tls://" + s.addr() })
		w.wantError(t, "want no tls if the server speaks none")
		if sent := s.connected(); len(sent) > 0 {
			t.Errorf("it received %q in plain text", sent)
		}
	}
}

// TestSecretsStayHidden: the server may repeat what it was sent, also in part.
func TestSecretsStayHidden(t *testing.T) {
	for _, echo := range []string{"s3cr3t-t0ken", "s3cr3t-t0k"} {
		s := newScripted(t, func(s *scripted) {
			s.answer = func(p *peer, _, _ string, _ []byte) bool {
				p.send("-ERR 'unknown token " + echo + "'\r\n")
				return true
			}
		})
		w := s.watch(withToken(t, "s3cr3t-t0ken"))
		w.wantError(t, "[hidden]")
		if strings.Contains(w.err.Error(), "s3cr3t") {
			t.Errorf("error %v names the token", w.err)
		}
	}
}
