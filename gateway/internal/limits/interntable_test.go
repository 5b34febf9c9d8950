package limits

import (
	"testing"

	"pgregory.net/rapid"
)

// TestInternTable compares random arrivals and departures with a map. A number
// belongs to one key at a time, and without streams nothing remains.
func TestInternTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table InternTable[uint8]
		model, numbers := map[uint8]int{}, map[uint8]int32{}
		var open []uint8
		for range rapid.IntRange(1, 500).Draw(t, "steps") {
			if len(open) == 0 || rapid.IntRange(0, 2).Draw(t, "enter") > 0 {
				key := rapid.Uint8().Draw(t, "key")
				at := table.Enter(key)
				if before, known := numbers[key]; known && before != at {
					t.Fatalf("key %d is number %d and %d", key, before, at)
				}
				numbers[key], open = at, append(open, key)
				model[key]++
			} else {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "leave")
				key := open[i]
				open[i] = open[len(open)-1]
				open = open[:len(open)-1]
				if got := table.Leave(numbers[key]); got != key {
					t.Fatalf("number %d was of %d, not of %d", numbers[key], key, got)
				}
				if model[key]--; model[key] == 0 {
					delete(model, key)
					delete(numbers, key)
				}
			}
			for key := range 256 {
				if got := table.streams(uint8(key)); got != model[uint8(key)] {
					t.Fatalf("key %d has %d streams, want %d", key, got, model[uint8(key)])
				}
			}
			if table.Keys() != len(model) || len(model) > 0 && table.Key(numbers[open[0]]) != open[0] {
				t.Fatalf("%d keys, want %d", table.Keys(), len(model))
			}
		}
		for _, key := range open {
			table.Leave(numbers[key])
		}
		if len(table.rows)+len(table.numbers)+len(table.free) > 0 {
			t.Fatal("something is left")
		}
	})
}
