package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// benchmarkText returns n events of size bytes, about things that are similar but not
// equal: names, addresses, random labels.
func benchmarkText(n, size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var all []byte
	for i := range n {
		var e strings.Builder
		fmt.Fprintf(&e, "event: upsert\ndata: "+`{"type":"upsert","watch":"services","key":"default/web-%06d","revision":"%d","value":`, i, 100_000+i)
		fmt.Fprintf(&e, `{"name":"web-%06d","state":"running","ip":"10.%d.%d.%d","ports":[{"name":"http","port":8080},{"name":"grpc","port":%d}]`,
			i, random.IntN(255), random.IntN(255), random.IntN(255), 9000+random.IntN(500))
		for k := 0; e.Len()+3 < size; k++ {
			fmt.Fprintf(&e, `,"label_%d":"%08x-%04x"`, k, random.Uint32(), random.IntN(65536))
		}
		all = append(append(all, e.String()[:size-3]...), "}\n\n"...)
	}
	return all
}

// BenchmarkPolicy measures the figures of compression levels in
// docs/performance.md: the cost and gain of each, for single events and for many in
// a row.
func BenchmarkPolicy(b *testing.B) {
	for _, c := range []struct{ events, size int }{
		{1, 100}, {1, 200}, {1, 300}, {1, 1 << 10}, {1, 4 << 10}, {1, 64 << 10}, {10, 300}, {218, 300}, {64, 1 << 10},
	} {
		text := benchmarkText(c.events, c.size)
		b.Run(fmt.Sprintf("%dx%d/stateless", c.events, c.size), func(b *testing.B) {
			benchmarkMethod(b, text, func(out *counter) { _ = flate.StatelessDeflate(out, text, false, nil) })
		})
		for _, level := range []int{flate.HuffmanOnly, 1, 2, 3, 5, 6, 9} {
			w, err := flate.NewWriter(nil, level)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%dx%d/level=%d", c.events, c.size, level), func(b *testing.B) {
				benchmarkMethod(b, text, func(out *counter) {
					w.Reset(out)
					_, _ = w.Write(text)
					_ = w.Flush()
				})
			})
		}
		for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBetterCompression, zstd.SpeedBestCompression} {
			e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true))
			if err != nil {
				b.Fatal(err)
			}
			var frame []byte
			b.Run(fmt.Sprintf("%dx%d/zstd=%s", c.events, c.size, level), func(b *testing.B) {
				benchmarkMethod(b, text, func(out *counter) {
					frame = e.EncodeAll(text, frame[:0])
					out.n = len(frame)
				})
			})
		}
		for _, coding := range compressing {
			b.Run(fmt.Sprintf("%dx%d/chosen=%s", c.events, c.size, coding), func(b *testing.B) {
				benchmarkMethod(b, text, func(out *counter) { out.n = len(coding.Compress([][]byte{text}).Bytes) })
			})
		}
	}
}

func benchmarkMethod(b *testing.B, text []byte, compress func(*counter)) {
	out := new(counter)
	for b.Loop() {
		out.n = 0
		compress(out)
	}
	b.SetBytes(int64(len(text)))
	b.ReportMetric(float64(len(text))/float64(out.n), "ratio")
}

// counter counts the bytes written to it.
type counter struct{ n int }

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}
