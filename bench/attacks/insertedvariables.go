package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

var insertedVariables = attack{
	name:  "inserted-variables",
	title: "an operator, or a reader of the log, looks for the text of an environment variable that the configuration inserts with ${NAME}",
	run:   runInsertedVariables,
}

// insertedConfiguration inserts a variable wherever errors of upstreams may show it: none of
// them is there.
const insertedConfiguration = listeners + `
stream: { prime_wait: 100ms, stale_allowed: 1s }
sources:
  folder: { type: files, dir: "DIR/${ATTACKS_HIDDEN}" }
  web: { type: gateway, url: "http://127.0.0.1:1/${ATTACKS_HIDDEN}" }
  etcd: { type: etcd, endpoints: ["127.0.0.1:1"], connect_timeout: 200ms }
  bus: { type: nats, url: "nats://127.0.0.1:1" }
  calls: { type: grpc, address: "${ATTACKS_HIDDEN}.localhost:1" }
  local: { type: store }
watches:
  files: { source: folder }
  web: { source: web }
  etcd: { source: etcd, prefix: "${ATTACKS_HIDDEN}/" }
  bus: { source: bus, bucket: "${ATTACKS_HIDDEN}" }
  calls: { source: calls, watch: "${ATTACKS_HIDDEN}" }
  notes: { source: local }
  part: { view_of: notes, prefix: "${ATTACKS_HIDDEN}" }
`

func runInsertedVariables(ctx context.Context, r *rig) error {
	const hidden = "h1ddentext"
	os.Setenv("ATTACKS_HIDDEN", hidden)
	defer os.Unsetenv("ATTACKS_HIDDEN")
	t, err := r.start(ctx, insertedConfiguration, nil)
	if err != nil {
		return err
	}
	if err := process.Sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	if err := t.Reload(); err != nil {
		return err
	}
	operator, shown, asked := t.operator(), []string{}, 0
	for _, path := range []string{
		"/v1/watches", "/v1/watches/files", "/v1/watches/web", "/v1/watches/etcd", "/v1/topology", "/v1/replicas", "/v1/instance",
		"/v1/subscribers", "/v1/series", "/metrics", "/readyz", "/readyz?verbose", "/debug/pprof/cmdline",
		"/v1/watches/files/resources", "/v1/watches/web/resources", "/v1/events?watch=files&until=end_of_snapshot",
	} {
		a, err := operator.get(ctx, path)
		if err != nil {
			return err
		}
		asked++
		if strings.Contains(a.body, hidden) {
			shown = append(shown, path)
		}
	}
	r.report("answers with the text", "0", len(shown) == 0, "%d of %d %s", len(shown), asked, strings.Join(shown, " "))
	lines, bad := 0, 0
	for line := range strings.Lines(t.log.String()) {
		lines++
		if strings.Contains(line, hidden) {
			bad++
		}
	}
	r.report("lines of the log with the text", "0", bad == 0, "%d of %d", bad, lines)
	wrong, err := r.write(listeners+"sources: { a: { type: store } }\nwatches: { notes: { source: \"${ATTACKS_HIDDEN}\" } }\n", nil)
	if err != nil {
		return err
	}
	for _, command := range [][]string{{"config", "check", wrong + "/gateway.yaml"}, {"serve", "--config", wrong + "/gateway.yaml"}} {
		output, code, err := r.command(ctx, command...)
		if err != nil {
			return err
		}
		r.report(fmt.Sprintf("the error of %s names the text", command[0]), "no", code != 0 && !strings.Contains(output, hidden), "exit code %d, %d times", code, strings.Count(output, hidden))
	}
	return nil
}
