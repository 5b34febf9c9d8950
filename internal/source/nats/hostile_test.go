package nats

import (
	"bytes"
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

// TestFraming: what the library would allocate is refused before.
func TestFraming(t *testing.T) {
	for stream, wrong := range map[string]bool{
		"INFO {}\r\nPING\r\nMSG a 1 2\r\nhi\r\nPONG\r\n":         false,
		"HMSG a 1 b 12 14\r\nNATS/1.0\r\n\r\nhi\r\n+OK\r\n":      false,
		"MSG a 1 0\r\n\r\nPING\r\n":                              false,
		"MSG a 1 26\r\nMSG a 1 99999999999999999\r\n\r\n":        false,
		"msg\ta\t1\t9223372036854775807\n":                       true,
		"MSG a 1 99999999999999999999\r\n":                       true,
		"MSG a 1 x\r\n":                                          true,
		"MSG a\r\n":                                              true,
		"MSG a 1 1\r\n1 MSG\nMSG a 1 99999999999999999\r\n":      true,
		"INFO " + strings.Repeat("x", maxLine):                   true,
		"-ERR '" + strings.Repeat("x", maxLine):                  true,
		"MSG " + strings.Repeat("x", maxLine) + " 1 1\r\n":       true,
		"PING" + strings.Repeat(" ", maxLine-6) + "\r\nPING\r\n": false,
	} {
		for _, piece := range []int{1, 7, len(stream)} {
			held := int64(0)
			f := &framing{own: "a", hold: func(bytes int64) { held += bytes }}
			var err error
			for rest := []byte(stream); len(rest) > 0 && err == nil; {
				n := min(piece, len(rest))
				err = f.pass(rest[:n])
				rest = rest[n:]
			}
			if (err != nil) != wrong {
				t.Errorf("%.60q in pieces of %d: error %v", stream, piece, err)
			}
			if err == nil && held != 0 {
				t.Errorf("%.60q in pieces of %d: %d bytes are held at its end", stream, piece, held)
			}
		}
	}
}

// TestHeldAsTheLibraryCounts: what is held for a message is released with it.
func TestHeldAsTheLibraryCounts(t *testing.T) {
	for _, text := range []string{"MSG k.a 1 2\r\nhi\r\n", "MSG k.a 1 reply 2\r\nhi\r\n", "HMSG k.a 1 reply 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", "HMSG k.a 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"} {
		held, want := int64(0), int64(len("k.a")+len("hi"))
		if strings.Contains(text, "reply") {
			want += int64(len("reply"))
		}
		if text[0] == 'H' {
			want += 12
		}
		f := &framing{own: "inbox.", hold: func(bytes int64) { held += bytes }}
		if err := f.pass([]byte(text)); err != nil || held != want {
			t.Errorf("%q: %d bytes are held (%v), want %d", text, held, err, want)
		}
	}
}

// FuzzFraming: however the bytes are cut, the verdict is the same, and nothing is held
// for less than nothing.
func FuzzFraming(f *testing.F) {
	f.Add([]byte("INFO {}\r\nMSG a 1 2\r\nhi\r\n"), byte(3))
	f.Add([]byte("HMSG a 1 12 14\r\nNATS/1.0\r\n\r\nhi junk\nMSG a 1 x\r\n"), byte(1))
	f.Fuzz(func(t *testing.T, data []byte, piece byte) {
		verdict := func(piece int) (int64, bool) {
			held := int64(0)
			f := &framing{own: "a", hold: func(bytes int64) { held += bytes }}
			for rest := data; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
				if f.pass(rest[:min(piece, len(rest))]) != nil {
					return 0, false
				}
				if held < 0 {
					t.Fatalf("%d bytes are held", held)
				}
			}
			return held, true
		}
		whole, ok := verdict(max(len(data), 1))
		if cut, also := verdict(int(piece) + 1); cut != whole || ok != also {
			t.Errorf("in pieces of %d: %d bytes and %v, else %d and %v", piece+1, cut, also, whole, ok)
		}
	})
}

// TestAnnouncementsOfTooMuch: the process stays up, and says why.
func TestAnnouncementsOfTooMuch(t *testing.T) {
	endless := func(p *peer, begin string) {
		p.send(begin)
		for chunk := bytes.Repeat([]byte("x"), 64<<10); ; {
			if _, err := p.Write(chunk); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*scripted)
		want   string
	}{
		"greeting": {func(s *scripted) { s.greet = func(p *peer) { endless(p, `INFO {"x":"`) } }, "a greeting of more than"},
		"line":     {func(s *scripted) { s.deliver = func(p *peer, _ string) { endless(p, `-ERR '`) } }, "a line of more than"},
		"message": {func(s *scripted) {
			s.deliver = func(p *peer, inbox string) { endless(p, "MSG $KV.b.a "+p.sid(inbox)+" 99999999999999\r\n") }
		}, "want a message of at most"},
	} {
		t.Run(name, func(t *testing.T) { newScripted(t, c.change).watch().wantError(t, c.want) })
	}
}
