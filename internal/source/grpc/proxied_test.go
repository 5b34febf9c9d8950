package grpc

import (
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// TestReasonNamesTheProxy: the environment may send connections elsewhere, even without TLS.
func TestReasonNamesTheProxy(t *testing.T) {
	if !streamtest.InEnvironment(t, "HTTPS_PROXY=http://user:secret@127.0.0.1:1") {
		return
	}
	s, err := New(Config{Address: "dns:///backend.test:9000", Watch: "w"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Watch(t.Context(), stream.Resume{}, streamtest.NewSinkRecorder(stream.Resume{}, nil))
	if want := `grpc dns:///backend.test:9000 through the proxy 127.0.0.1:1, watch "w": `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}
