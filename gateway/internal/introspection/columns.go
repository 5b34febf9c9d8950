package introspection

import (
	"math"
	"strconv"
)

// Columns has one list for each figure, with one value for each interval.
type Columns struct {
	States      []Run   `json:"states"`
	Changes     numbers `json:"changes"`
	Events      numbers `json:"events"`
	Bytes       numbers `json:"bytes"`
	LatencyP50  numbers `json:"latency_p50_ms"`
	LatencyP99  numbers `json:"latency_p99_ms"`
	Lag         numbers `json:"lag"`
	Subscribers numbers `json:"subscribers"`
	DeliveryP50 numbers `json:"delivery_p50_ms"`
	DeliveryP99 numbers `json:"delivery_p99_ms"`
	Reports     numbers `json:"delivery_reports"`
}

// Run is a number of intervals in a row with the same state. Without a state, they have no samples.
type Run struct {
	State   string `json:"state,omitempty"`
	Samples int    `json:"samples"`
}

// numbers are figures; NaN is sent as null.
type numbers []float32

// MarshalJSON implements json.Marshaler. Four digits are more than a chart shows, but whole
// numbers keep all of theirs.
func (n numbers) MarshalJSON() ([]byte, error) {
	out := append(make([]byte, 0, 2+4*len(n)), '[')
	for i, v := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendNumber(out, float64(v))
	}
	return append(out, ']'), nil
}

func appendNumber(out []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(out, "null"...)
	case v >= 1000 || v == math.Trunc(v):
		return strconv.AppendFloat(out, math.Round(v), 'f', 0, 64)
	}
	return strconv.AppendFloat(out, rounded(v), 'f', -1, 64)
}

// rounded returns a number below 1,000 with about four digits.
func rounded(v float64) float64 {
	digits := 1000.0
	for limit := v; limit >= 1; limit /= 10 {
		digits /= 10
	}
	digits = max(digits, 1) * 10
	return math.Round(v*digits) / digits
}

func columnsOf(samples []sample) Columns {
	column := func(of func(*sample) float32) numbers {
		out := make(numbers, len(samples))
		for i := range samples {
			out[i] = unknownValue
			if s := &samples[i]; s.state != Missing {
				out[i] = of(s)
			}
		}
		return out
	}
	return Columns{
		States:      runsOf(samples),
		Changes:     column(func(s *sample) float32 { return s.changes }),
		Events:      column(func(s *sample) float32 { return s.events }),
		Bytes:       column(func(s *sample) float32 { return s.bytes }),
		LatencyP50:  column(func(s *sample) float32 { return s.latencyP50 }),
		LatencyP99:  column(func(s *sample) float32 { return s.latencyP99 }),
		Lag:         column(func(s *sample) float32 { return float32(s.lag) }),
		Subscribers: column(func(s *sample) float32 { return float32(s.subscribers) }),
		DeliveryP50: column(func(s *sample) float32 { return s.deliveryP50 }),
		DeliveryP99: column(func(s *sample) float32 { return s.deliveryP99 }),
		Reports:     column(func(s *sample) float32 { return float32(s.reports) }),
	}
}

// runsOf returns the states of samples, those in a row together.
func runsOf(samples []sample) []Run {
	runs := []Run{}
	for i := range samples {
		state := samples[i].state.String()
		if n := len(runs); n > 0 && runs[n-1].State == state {
			runs[n-1].Samples++
			continue
		}
		runs = append(runs, Run{State: state, Samples: 1})
	}
	return runs
}
