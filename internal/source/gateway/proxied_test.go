package gateway

import (
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// TestReasonNamesTheProxy: the environment may send connections elsewhere, by the scheme of the URL.
func TestReasonNamesTheProxy(t *testing.T) {
	if !streamtest.InEnvironment(t, "HTTP_PROXY=http://user:secret@127.0.0.1:1") {
		return
	}
	u, err := New(Config{URL: "http://core.test"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := u.Source("w", nil)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Watch(t.Context(), stream.Resume{}, streamtest.NewSinkRecorder(stream.Resume{}, nil))
	if want := `gateway http://core.test through the proxy 127.0.0.1:1, watch "w": `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}
