package session_test

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
)

// broken is a sender that panics.
type broken struct{ wire.Sender }

func (broken) Write([]byte) { panic("broken") }

// TestPanicOfAHijackedStream checks that a panic ends its stream, and no other.
func TestPanicOfAHijackedStream(t *testing.T) {
	w := gatewaytest.NewWatches(t, "a")
	d := gatewaytest.NewDeps(w)
	var logged strings.Builder
	d.Log = slog.New(slog.NewTextHandler(&logged, nil))
	near, far := net.Pipe()
	all := session.NewHijacked(gatewaytest.NewHangupWatcher)
	c := gatewaytest.Open(t, w, d, limits.Client{}, session.Request{Format: frame.SSE, Watches: []session.Choice{{Name: "a"}}})
	if !all.Run(near, c, broken{&wire.ChunkWriter{Conn: near}}) {
		t.Fatal("not admitted")
	}
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("its connection: %v", err)
	}
	if watch, _ := w.Registry.Watch("a"); d.Admission.Count() != 0 || all.Open() != 0 || watch.Subscribers() != 0 {
		t.Error("something is left of it")
	}
	if !strings.Contains(logged.String(), "level=ERROR") || !strings.Contains(logged.String(), "panic: broken") {
		t.Errorf("logged %q", &logged)
	}
}
