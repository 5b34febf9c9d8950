package introspection

import "math"

// unknownValue is a figure that nothing was measured for.
var unknownValue = float32(math.NaN())

// sample has the figures of one interval. Its state is Missing if there are none.
type sample struct {
	changes, events, bytes   float32 // per second
	latencyP50, latencyP99   float32 // milliseconds; NaN: nothing was measured
	deliveryP50, deliveryP99 float32
	lag, subscribers         uint32
	reports                  uint16
	state                    State
}

func (c *counts) sample() sample {
	return sample{
		changes: c.rate(c.changes), events: c.rate(c.events), bytes: c.rate(c.bytes),
		latencyP50: c.latency.quantile(.5), latencyP99: c.latency.quantile(.99),
		deliveryP50: c.delivery.quantile(.5), deliveryP99: c.delivery.quantile(.99),
		lag: saturated(c.lag), subscribers: saturated(c.subscribers),
		reports: uint16(min(c.delivery.all, math.MaxUint16)), state: c.state,
	}
}

func (c *counts) rate(n uint64) float32 { return float32(float64(n) / c.seconds) }

func saturated(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }
