package commands

import (
	"strings"
	"testing"
)

// TestConfigCheckMakesSources: check rejects every configuration that serve
// would reject, for all watches at once.
func TestConfigCheckMakesSources(t *testing.T) {
	code, stdout, stderr := command(t, "config", "check", file(t, "gateway.yaml", `
sources:
  e: { type: etcd, endpoints: ["http://a:1"], tls: {} }
  f: { type: etcd, endpoints: [] }
watches: { a: { source: e }, b: { source: f } }
`))
	for _, part := range []string{"gateway.yaml: watch a: ", "https://", "watch b: ", "endpoint"} {
		if !strings.Contains(stderr, part) {
			t.Errorf("no %q in the output: %s", part, stderr)
		}
	}
	if code != 1 || stdout != "" {
		t.Errorf("exit code %d and %q, want 1 and nothing", code, stdout)
	}
}

// TestConfigCheckOfViews: a view has no source of its own to make.
func TestConfigCheckOfViews(t *testing.T) {
	code, stdout, stderr := command(t, "config", "check", file(t, "gateway.yaml", `
sources: { local: { type: store } }
watches: { notes: { source: local }, some: { view_of: notes, prefix: a } }
`))
	if code != 0 || !strings.Contains(stdout, "ok: 1 source, 2 watches") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
