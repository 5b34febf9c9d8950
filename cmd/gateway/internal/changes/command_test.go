//go:build unix

package changes

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/client"
)

func command(line string) (*HookCommand, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &HookCommand{Line: line, Retries: 0, Stdout: out, Stderr: out, Logger: slog.New(slog.DiscardHandler)}, out
}

func event(key, encoding string) client.Event {
	return client.Event{Type: "upsert", Watch: "w", Data: []byte(`{"type":"upsert"}`),
		Resource: client.Resource{Key: key, KeyEncoding: encoding, Revision: "18446744073709551615"}}
}

// What a key says never becomes a part of the command.
func TestCommandGetsTheEvent(t *testing.T) {
	nul, long := "a\x00b", strings.Repeat("k", 200<<10)
	for name, c := range map[string]struct{ key, encoding, want string }{
		"plain":       {"a/b", "", "a/b||"},
		"for a shell": {"$(echo x) `echo y`; 'z\"\n*", "", "$(echo x) `echo y`; 'z\"\n*||"},
		"in base64":   {"//4=", "base64", "//4=|base64|"},
		"with NUL":    {nul, "", base64.StdEncoding.EncodeToString([]byte(nul)) + "|base64|"},
		"long":        {long, "", "|too long|"},
	} {
		t.Run(name, func(t *testing.T) {
			run, out := command(`printf '%s|%s|' "$WATCHTIDE_KEY" "$WATCHTIDE_KEY_ENCODING"; echo "$WATCHTIDE_TYPE $WATCHTIDE_WATCH $WATCHTIDE_REVISION"; cat`)
			err := run.Run(t.Context(), event(c.key, c.encoding))
			want := c.want + "upsert w 18446744073709551615\n{\"type\":\"upsert\"}\n"
			if err != nil || out.String() != want {
				t.Errorf("got %q and %v, want %q", out, err, want)
			}
		})
	}
}

func TestCommandNeedNotReadTheEvent(t *testing.T) {
	run, _ := command("true")
	e := event("a", "")
	e.Data = bytes.Repeat([]byte("x"), 8<<20)
	if err := run.Run(t.Context(), e); err != nil {
		t.Error(err)
	}
}

// It is run again after 1, 2, 4 s and so on, at most a minute apart.
func TestCommandIsRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := filepath.Join(t.TempDir(), "log")
		run, _ := command(fmt.Sprintf(`echo x >> %s; test $(wc -l < %[1]s) -ge 9`, log))
		run.Retries = -1
		began := time.Now()
		if err := run.Run(t.Context(), event("a", "")); err != nil {
			t.Error(err)
		}
		if got, want := time.Since(began), (1+2+4+8+16+32+60+60)*time.Second; got != want {
			t.Errorf("it took %v, want %v", got, want)
		}
		if text, _ := os.ReadFile(log); len(text) != 2*9 {
			t.Errorf("it was run %d times", len(text)/2)
		}
	})
}

func TestCommandIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, out := command("echo x; exit 7")
		run.Retries = 2
		err := run.Run(t.Context(), event("a", ""))
		if err == nil || !strings.Contains(err.Error(), `upsert of "a" in w: exit status 7`) || out.String() != "x\nx\nx\n" {
			t.Errorf("got %v after %q", err, out)
		}
	})
}

func TestCommandIsNotStartedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, out := command("echo x; exit 1")
		run.Retries = -1
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		time.AfterFunc(90*time.Second, func() { cancel(why) }) // between two attempts
		if err := run.Run(ctx, event("a", "")); !errors.Is(err, why) || out.String() != strings.Repeat("x\n", 7) {
			t.Errorf("got %v after %q", err, out)
		}
		if err := run.Run(ctx, event("a", "")); !errors.Is(err, why) || out.String() != strings.Repeat("x\n", 7) {
			t.Errorf("got %v after %q", err, out)
		}
	})
}

// fifo makes a pipe with a name. What opens it to read waits until something opens it to write.
func fifo(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// read reads from a pipe with a name, once something writes to it.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCommandMayFinish(t *testing.T) {
	started, goOn := fifo(t), fifo(t)
	run, out := command(fmt.Sprintf("echo started > %s; read x < %s; echo done", started, goOn))
	run.grace = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run.Run(ctx, event("a", "")) }()
	read(t, started)
	cancel()
	if err := os.WriteFile(goOn, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || out.String() != "done\n" {
		t.Errorf("got %v, %q", err, out)
	}
}

// All processes of the command end, also those that do not want to.
func TestCommandThatGoesOnIsEnded(t *testing.T) {
	for name, trap := range map[string]string{"at SIGTERM": "", "at SIGKILL": "trap '' TERM; "} {
		t.Run(name, func(t *testing.T) {
			held := fifo(t)
			run, _ := command(trap + "(echo started >&3; sleep 1000) 3> " + held + " & wait")
			run.grace, run.killAfter = time.Millisecond, 100*time.Millisecond
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("why")
			ended := make(chan error, 1)
			go func() { ended <- run.Run(ctx, event("a", "")) }()
			pipe, err := os.Open(held)
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			if _, err := pipe.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			cancel(why)
			if err := <-ended; !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
			if _, err := io.Copy(io.Discard, pipe); err != nil { // until nobody holds it any more
				t.Error(err)
			}
		})
	}
}
