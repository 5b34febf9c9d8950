package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

var fullStoreTells = attack{
	name:  "full-store-tells",
	title: "a principal that may write to one watch of a store fills it, and reads in the refusal how long the values are that are hidden from it",
	run:   runFullStoreTells,
}

const fullConfiguration = listeners + accounts + `
sources: { a: { type: store, max_bytes: 64KiB, max_value_bytes: 128KiB } }
watches:
  secret: { source: a, allow: [ { role: writers, read: "true", write: "true" } ] }
  mine: { source: a, allow: [ { role: anyone, read: "true", write: "true", delete: "true" } ] }
  shared: { source: a, allow: [ { role: writers, read: "true", write: "true" }, { role: anyone, read: value.owner == principal.name, write: "true" } ] }
`

// hiddenLengths are the lengths of hidden values, one for each world.
var hiddenLengths = []int{0, 100, 101, 5000}

func runFullStoreTells(ctx context.Context, r *rig) error {
	var worlds [][]string
	for _, n := range hiddenLengths {
		refusals, err := refusalsOfFullStore(ctx, r, n)
		if err != nil {
			return err
		}
		worlds = append(worlds, refusals)
	}
	different, refused := 0, 0
	for _, world := range worlds {
		for i, refusal := range world {
			if refusal != worlds[0][i] {
				different++
			}
			if !strings.HasPrefix(refusal, "2") {
				refused++
			}
		}
	}
	all := len(worlds) * len(worlds[0])
	r.report("writes that are refused in each world", fmt.Sprint(all), refused == all, "%d", refused)
	r.report("refusals that differ with the length of hidden values", "0", different == 0, "%d of %d: %s", different, all, strings.TrimSpace(worlds[len(worlds)-1][0]))
	return nil
}

// refusalsOfFullStore returns the answers to writes that do not fit where the hidden values
// have n bytes.
func refusalsOfFullStore(ctx context.Context, r *rig, n int) (refusals []string, err error) {
	t, err := r.start(ctx, fullConfiguration, nil)
	if err != nil {
		return nil, err
	}
	writer, bob := t.as("writer", "127.0.0.4"), t.as("bob", "127.0.0.66")
	value := fmt.Sprintf(`{"owner":"writer","s":%q}`, strings.Repeat("x", n))
	for _, watch := range []string{"secret", "shared"} {
		if err := writer.put(ctx, watch, "hidden", value); err != nil {
			return nil, err
		}
	}
	for _, watch := range []string{"mine", "shared"} {
		for _, size := range []int{64 << 10, 65 << 10, 100 << 10} {
			a, err := bob.ask(ctx, http.MethodPut, "/v1/watches/"+watch+"/resources/k", fmt.Sprintf("%q", strings.Repeat("y", size)))
			if err != nil {
				return nil, err
			}
			refusals = append(refusals, fmt.Sprintf("%d %s %s", a.status, a.header.Get("Retry-After"), a.body))
		}
	}
	return refusals, nil
}
