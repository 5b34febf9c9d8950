package direct

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/conversation"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/poll"
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
	one := &hijackedStream{of: NewHijacked(gatewaytest.NewHangupWatcher), conn: near, bottom: near, far: poll.NewFarSide(false)}
	if !one.of.admit(one) {
		t.Fatal("not admitted")
	}
	c := gatewaytest.Open(t, w, d, limits.Client{}, conversation.Request{Format: frame.SSE, Watches: []conversation.Choice{{Name: "a"}}})
	one.run(newPump(c, broken{&wire.ChunkWriter{Conn: near}}, nil))
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("its connection: %v", err)
	}
	if watch, _ := w.Registry.Watch("a"); d.Admission.Count() != 0 || len(one.of.open) != 0 || watch.Subscribers() != 0 {
		t.Error("something is left of it")
	}
	if !strings.Contains(logged.String(), "level=ERROR") || !strings.Contains(logged.String(), "panic: broken") {
		t.Errorf("logged %q", &logged)
	}
}
