// What a tree of gateways needs, from the measured cost of a subscriber.

package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Cost is what one subscriber costs a gateway.
type Cost struct {
	Delivery time.Duration // CPU time of an event
	Connect  time.Duration // CPU time of a new stream
	Memory   float64       // KiB of an idle stream
	Socket   float64       // KiB of the kernel for a connection
	Frame    float64       // bytes that are added to a value
}

// Load is what subscribers are sent.
type Load struct {
	Events float64       // in a second
	Value  float64       // bytes of the value of an event
	Age    time.Duration // of a stream, at which it is replaced
	Log    float64       // GB: what a gateway holds of its watches
}

// Gateway is one of the tree.
type Gateway struct {
	Streams float64 // that one gateway has at most
	Busy    float64 // share of its processors that the load may use
	FanOut  float64 // gateways behind one
	Hop     time.Duration
}

// Need is what a number of subscribers needs.
type Need struct {
	Gateways []float64 // of each level, from the leaves to the top
	Cores    float64   // of all
	Memory   float64   // GB of all
	Network  float64   // Gbit/s that all send
	Latency  time.Duration
}

// Of returns what so many subscribers need. Gateways above the leaves are followed by
// gateways, whose streams cost the same.
func Of(subscribers float64, c Cost, l Load, g Gateway) Need {
	var n Need
	for streams, most := subscribers, g.Streams; ; most = g.FanOut {
		gateways := math.Ceil(streams / most)
		if subscribers > g.Streams {
			gateways = max(gateways, 2) // no level may depend on one
		}
		n.Gateways = append(n.Gateways, gateways)
		perSecond := l.Events*c.Delivery.Seconds() + c.Connect.Seconds()/l.Age.Seconds()
		n.Cores += streams * perSecond / g.Busy
		n.Memory += (streams*(c.Memory+c.Socket)*1024 + gateways*l.Log*1e9) / 1e9
		n.Network += streams * l.Events * (l.Value + c.Frame) * 8 / 1e9
		n.Latency += g.Hop
		if gateways <= g.FanOut {
			return n
		}
		streams = gateways
	}
}

// Table returns a line for each number of subscribers, as Markdown.
func Table(subscribers []float64, c Cost, l Load, g Gateway) string {
	var b strings.Builder
	b.WriteString("| subscribers | gateways, from the leaves up | cores | GB | Gbit/s | hops' latency |\n|---:|---|---:|---:|---:|---:|\n")
	for _, s := range subscribers {
		n := Of(s, c, l, g)
		var levels []string
		for _, n := range n.Gateways {
			levels = append(levels, fmt.Sprintf("%.0f", n))
		}
		fmt.Fprintf(&b, "| %.0f | %s | %.3g | %.3g | %.3g | %v |\n", s, strings.Join(levels, " + "), n.Cores, n.Memory, n.Network, n.Latency)
	}
	return b.String()
}
