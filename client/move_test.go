package client

import (
	"errors"
	"testing"
	"testing/synctest"
)

// TestMoverWithoutAWindow: nothing could be moved, and the whole watch would be followed.
func TestMoverWithoutAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		for _, options := range [][]WatchOption{{&Mover{}}, {View{Prefix: "a"}, &Mover{}}, {View{Order: "n", Limit: 2}, counting, &Mover{}}} {
			if _, err := follow(t, s, t.Context(), nil, options...); !errors.Is(err, errNoWindow) {
				t.Errorf("%+v: %v", options, err)
			}
		}
		if len(s.requests) > 0 {
			t.Errorf("%d requests, want none", len(s.requests))
		}
	})
}
