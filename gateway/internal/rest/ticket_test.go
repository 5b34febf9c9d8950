package rest

import (
	"encoding/json"
	"slices"
	"testing"
)

// FuzzTicketRequest compares the request for a ticket with what encoding/json makes of it.
func FuzzTicketRequest(f *testing.F) {
	for _, seed := range []string{
		`{"watches":["a","b","a"]}`, `{"watches":[]}`, `{"watches":["a"],"watches":["b"]}`, `{"x":1}`, `{"watches":[["a"]]}`, `[]`, ` { "watches" : [ "\u0061" ] } `, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if checkJSON(raw) != nil {
			return
		}
		watches, p := parseTicketRequest(raw)
		if p != nil {
			if p.Status != 400 || p.Parameter != "body" || watches != nil {
				t.Fatalf("%q: %+v, %q", raw, p, watches)
			}
			return
		}
		var want struct {
			Watches []string `json:"watches"`
		}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("%q is accepted as %q: %v", raw, watches, err)
		}
		for _, name := range want.Watches {
			if !slices.Contains(watches, name) {
				t.Fatalf("%q: %q has no %q", raw, watches, name)
			}
		}
		if len(watches) == 0 || len(watches) > min(len(want.Watches), maxTicketWatches) {
			t.Fatalf("%q: %q", raw, watches)
		}
	})
}
