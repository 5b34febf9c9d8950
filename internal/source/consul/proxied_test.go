package consul

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
	s, err := New(Config{Address: "consul.test:8502", Resources: Resources{Type: artistType}})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Watch(t.Context(), stream.Resume{}, streamtest.NewSinkRecorder(stream.Resume{}, nil))
	if want := `consul consul.test:8502 through the proxy 127.0.0.1:1, `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}
