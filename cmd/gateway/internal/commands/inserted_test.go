package commands

import (
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/cmd/gateway/internal/telemetry"
)

// The text of a variable that must not be shown, and what of it must not be, in any form.
const (
	insertedText = `s3cret "t e x t"/ü\deep/`
	insertedSeed = "s3cret"
)

// TestInsertedTextsAreNotShown: in no log and in no answer to operators, whatever the upstreams
// say.
func TestInsertedTextsAreNotShown(t *testing.T) {
	t.Setenv("SECRET_TEXT", insertedText)
	t.Setenv("SECRET_NAME", "s3cretname")
	t.Setenv("SECRET_PATH", filepath.Join(t.TempDir(), "s3cret-folder"))
	t.Setenv("SHORT", "core")
	g := serve(t, "--log-level", "debug", "--config", file(t, "watchtide.yaml", `
sources:
  folder:  { type: files, dir: "${SECRET_PATH}/x" }
  cluster: { type: etcd, endpoints: ["127.0.0.1:1"], connect_timeout: 100ms }
  other:   { type: gateway, url: "http://127.0.0.1:1/${SECRET_NAME}" }
  bus:     { type: nats, url: "nats://127.0.0.1:1" }
  backend: { type: grpc, address: "${SECRET_NAME}.localhost:1" }
  local:   { type: store }
stream: { prime_wait: 100ms }
watches:
  f: { source: folder }
  e: { source: cluster, prefix: "${SECRET_TEXT}" }
  g: { source: other, watch: "${SHORT}" }
  n: { source: bus, bucket: "${SECRET_NAME}" }
  b: { source: backend, watch: "${SECRET_NAME}" }
  notes: { source: local }
  part: { view_of: notes, prefix: "${SECRET_TEXT}" }
`))
	g.logs.awaitTimes(t, `"upstream lost"`, 6)
	for _, path := range []string{"/v1/watches", "/v1/watches/f", "/v1/topology", "/v1/replicas", "/v1/subscribers", "/v1/series", "/metrics", "/readyz?verbose", "/v1/client", "/v1/watches/e/delivery"} {
		status, body := fetch(t, http.DefaultTransport, "GET", "http://"+g.operations+path, "")
		if strings.Contains(body, insertedSeed) {
			t.Errorf("%s: %d: %.2000s", path, status, body)
		}
	}
	logs := g.logs.String()
	for line := range strings.Lines(logs) {
		if strings.Contains(line, insertedSeed) {
			t.Errorf("log: %s", line)
		}
	}
	if !strings.Contains(logs, "${SECRET_NAME}") || !strings.Contains(logs, "${SECRET_PATH}") {
		t.Errorf("the log does not name the variables:\n%s", logs)
	}
	if strings.Contains(logs, "${SHORT}") {
		t.Errorf("a short text is hidden:\n%s", logs)
	}
}

// TestInsertedTextsAreHiddenInEveryForm in which errors and logs have it.
func TestInsertedTextsAreHiddenInEveryForm(t *testing.T) {
	t.Setenv("SECRET", insertedText)
	t.Setenv("LONGER", insertedText+" and more")
	for _, format := range []string{telemetry.Text, telemetry.JSON} {
		var i inserted
		for _, name := range []string{"SECRET", "LONGER"} {
			if got, set := i.Getenv(name); !set || !strings.HasPrefix(got, insertedText) {
				t.Fatalf("%q", got)
			}
		}
		var out strings.Builder
		logger := telemetry.LogOptions{Format: format}.Logger(i.writer(&out), false)
		for _, err := range []error{
			fmt.Errorf("plain %s", insertedText), fmt.Errorf("quoted %q", insertedText), fmt.Errorf("in a path %q", "/"+insertedText+"/x"),
			fmt.Errorf("longer %s and more", insertedText),
		} {
			logger.Warn("failed", "error", err, slog.Group("of", "key", insertedText))
		}
		if text := out.String(); strings.Contains(text, insertedSeed) || !strings.Contains(text, "longer ${LONGER}") || strings.Count(text, "${SECRET}") < 7 {
			t.Errorf("%s: %s", format, text)
		}
	}
}

// TestInsertedTextsAreNotInErrors of the command line.
func TestInsertedTextsAreNotInErrors(t *testing.T) {
	t.Setenv("SECRET", "s3cret-host")
	name := file(t, "watchtide.yaml", `{ http: { listen: "${SECRET}.invalid:0" }, sources: { a: { type: store } }, watches: { notes: { source: a } }, auth: { tokens_file: "none" } }`)
	for _, args := range [][]string{{"serve", "--config", name, "--operations", "off"}, {"config", "check", name}} {
		if _, stdout, stderr := command(t, args...); strings.Contains(stdout+stderr, insertedSeed) {
			t.Errorf("%v: %s%s", args, stdout, stderr)
		}
	}
}
