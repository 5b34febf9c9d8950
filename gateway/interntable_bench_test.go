package gateway

import (
	"fmt"
	"net/netip"
	"testing"
)

// BenchmarkInternTable is the departure and the arrival of a stream in a table of so
// many clients, and the memory that the table takes for each of them.
func BenchmarkInternTable(b *testing.B) {
	for _, clients := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			keys, numbers := make([]client, clients), make([]int32, clients)
			for i := range keys {
				keys[i] = clientOf(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
			}
			var table internTable[client]
			before := liveBytes()
			for i, key := range keys {
				numbers[i] = table.enter(key)
			}
			grown := liveBytes() - before
			for i := 0; b.Loop(); i++ {
				one := i * 7919 % clients // in no order
				table.leave(numbers[one])
				numbers[one] = table.enter(keys[one])
			}
			b.ReportMetric(float64(grown)/float64(clients), "B/client")
		})
	}
}
