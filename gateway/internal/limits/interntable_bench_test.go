package limits

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
)

// BenchmarkInternTable is the departure and the arrival of a stream in a table of so
// many clients, and the memory that the table takes for each of them.
func BenchmarkInternTable(b *testing.B) {
	for _, clients := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			keys, numbers := make([]Client, clients), make([]int32, clients)
			for i := range keys {
				keys[i] = ClientOf(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
			}
			var table InternTable[Client]
			before := heapBytes()
			for i, key := range keys {
				numbers[i] = table.Enter(key)
			}
			grown := heapBytes() - before
			for i := 0; b.Loop(); i++ {
				one := i * 7919 % clients // in no order
				table.Leave(numbers[one])
				numbers[one] = table.Enter(keys[one])
			}
			b.ReportMetric(float64(grown)/float64(clients), "B/client")
		})
	}
}

// heapBytes returns the memory in use by the heap.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // the second collection sweeps the garbage that the first one found
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
