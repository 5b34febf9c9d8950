package streamtest

import (
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// Events cut off before their id belong to the previous order, unless there was a
// reset.
func TestEpochOfCutOffEvents(t *testing.T) {
	came := &Mark{Position: stream.Position{Watch: "w", Epoch: "e", Upserts: 3, AsOf: 3}}
	other := &Mark{Position: stream.Position{Watch: "w", Epoch: "f", AsOf: 3}}
	change, resets := []stream.Event{upsert("a", 6, "6")}, []stream.Event{reset(stream.ResetEpochChanged)}
	for name, c := range map[string]struct {
		connection *Connection
		want       string
	}{
		"an id follows":         {&Connection{Flushes: []Flush{{Events: change}, {Mark: came}}}, "e"},
		"an id was before":      {&Connection{Flushes: []Flush{{Mark: came}, {Events: change}}}, "e"},
		"it resumed from an id": {&Connection{From: came, Flushes: []Flush{{Events: change}}}, "e"},
		"a reset":               {&Connection{From: came, Flushes: []Flush{{Events: resets}}}, ""},
		"an id follows a reset": {&Connection{From: came, Flushes: []Flush{{Events: change}, {Events: resets, Mark: other}}}, "e"},
		"there was none":        {&Connection{Flushes: []Flush{{Events: change}}}, ""},
	} {
		w := walker{connection: c.connection}
		for i, f := range c.connection.Flushes {
			if got := w.epochAt(i); len(f.Events) > 0 && f.Mark == nil && got != c.want {
				t.Errorf("%s: epoch %q, want %q", name, got, c.want)
			}
		}
	}
}
