package kubernetes

import (
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// TestReasonNamesTheProxy: the environment may send connections elsewhere, and so may a kubeconfig.
func TestReasonNamesTheProxy(t *testing.T) {
	if !streamtest.InEnvironment(t, "HTTPS_PROXY=http://user:secret@127.0.0.1:1") {
		return
	}
	s, err := New(Config{Objects: Objects{Version: "v1", Resource: "pods"}, Kubeconfig: writeFile(t, "kubeconfig", kubeconfigOf("https://cluster.test:6443"))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Watch(t.Context(), stream.Resume{}, streamtest.NewSinkRecorder(stream.Resume{}, nil))
	if want := `kubernetes https://cluster.test:6443 through the proxy 127.0.0.1:1, `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}
