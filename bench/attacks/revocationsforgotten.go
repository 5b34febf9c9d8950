package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/watchtide/watchtide/bench/internal/process"
)

var revocationsForgotten = attack{
	name:  "revocations-forgotten",
	title: "a principal whose token is revoked waits for a restart of the gateway",
	run:   runRevocationsForgotten,
}

const revocationConfiguration = listeners + `
auth: { tokens_file: DIR/tokens, revoked: { watch: revocations } }
roles: { anyone: { when: "true" } }
sources: { a: { type: store }, disk: { type: files, dir: DIR/revoked } }
watches:
  notes: { source: a, allow: [ { role: anyone, read: "true", write: "true" } ] }
  revocations: { source: disk }
`

func runRevocationsForgotten(ctx context.Context, r *rig) error {
	if err := refuseRevocationsInMemory(ctx, r); err != nil {
		return err
	}
	dir, err := r.write(revocationConfiguration, nil)
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, "revoked", "token")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	t, err := r.startIn(ctx, dir, nil)
	if err != nil {
		return err
	}
	const list = "/v1/watches/notes/resources"
	r.equal("a token that is not revoked", "200", statusOf(ctx, t.as("ann", "127.0.0.66"), list))
	if err := os.WriteFile(filepath.Join(folder, "ann.json"), []byte("{}"), 0o600); err != nil {
		return err
	}
	ann := t.as("ann", "127.0.0.67")
	err = process.Await(ctx, "a revocation to be known", func() (bool, error) { return statusOf(ctx, ann, list) == "401", nil })
	if err != nil {
		return err
	}
	for n := range 2 {
		t.Stop()
		if t, err = r.startIn(ctx, dir, nil); err != nil {
			return err
		}
		got := map[string]int{}
		ann := t.as("ann", "127.0.0.66")
		for range 20 {
			got[statusOf(ctx, ann, list)]++
		}
		// There may be no answer but 503 before the revocations are known, and 429 for too many.
		r.report(fmt.Sprintf("a revoked token after restart %d: accepted", n+1), "never", got["200"] == 0 && got["401"] > 0, "%v", got)
		r.equal("somebody else then", "200", statusOf(ctx, t.as("bob", "127.0.0.5"), list))
	}
	return nil
}

// refuseRevocationsInMemory checks that no command takes a watch of revocations that ends with
// the process.
func refuseRevocationsInMemory(ctx context.Context, r *rig) error {
	for source, configuration := range map[string]string{
		"a store":           strings.ReplaceAll(revocationConfiguration, "revocations: { source: disk }", "revocations: { source: a }"),
		"a view of a store": strings.ReplaceAll(revocationConfiguration, "revocations: { source: disk }", "revocations: { view_of: notes, prefix: x }"),
	} {
		dir, err := r.write(configuration, nil)
		if err != nil {
			return err
		}
		for _, command := range [][]string{{"config", "check"}, {"serve", "--config"}} {
			brief, cancel := context.WithTimeout(ctx, process.Patience/10)
			_, code, err := r.command(brief, append(command, filepath.Join(dir, "gateway.yaml"))...)
			cancel()
			if err != nil && brief.Err() == nil {
				return err
			}
			r.report(command[0]+" with revocations in "+source, "refused", code > 0, "exit code %d", code)
		}
	}
	return nil
}
