package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// measured has the line of docs/performance.md that each figure is from.
var measured = []string{
	"| gateway, shards | 4.77 (4.73…4.77) |",
	"| gateway, shards | 0.57 ¹ | 74 (71…74) | 1 | 182 (178…182) |",
	"about 5 KiB",
	"about 140 for the gateway",
}

var (
	cost  = Cost{Delivery: 4770 * time.Nanosecond, Connect: 74 * time.Microsecond, Memory: 0.57, Socket: 5, Frame: 140}
	load  = Load{Events: 1, Value: 200, Age: 30 * time.Minute, Log: 0.1}
	trunk = Gateway{Streams: 100_000, Busy: 0.5, FanOut: 100, Hop: 182 * time.Microsecond}
)

// TestTableOfScale: the table in docs/scale.md is what the measured figures give.
func TestTableOfScale(t *testing.T) {
	performance, scale := read(t, "performance.md"), read(t, "scale.md")
	for _, figure := range measured {
		if !strings.Contains(performance, figure) {
			t.Errorf("performance.md has no %q any more: take over its new figures, here and in scale.md", figure)
		}
	}
	if want := Table([]float64{1e3, 1e5, 1e7, 1e8}, cost, load, trunk); !strings.Contains(scale, want) {
		t.Errorf("scale.md lacks the table:\n%s", want)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNoLevelDependsOnOneGateway(t *testing.T) {
	if n := Of(1e5+1, cost, load, trunk); n.Gateways[0] != 2 {
		t.Errorf("%v gateways, want 2", n.Gateways)
	}
	if n := Of(1e8, cost, load, trunk); len(n.Gateways) != 2 || n.Gateways[0] != 1000 || n.Gateways[1] != 10 || n.Latency != 2*trunk.Hop {
		t.Errorf("got %+v", n)
	}
}
