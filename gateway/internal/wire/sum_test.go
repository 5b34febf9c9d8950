package wire

import (
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

// drawText draws a text: many are short, some are long.
func drawText(t *rapid.T, name string) []byte {
	p := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, name)
	if len(p) == 0 {
		return nil
	}
	times := rapid.SampledFrom([]int{1, 1, 1, 100, 3000}).Draw(t, name+" is repeated")
	long := make([]byte, 0, times*len(p))
	for range times {
		long = append(long, p...)
	}
	return long
}

func TestSumOfTextsInARow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawText(t, "a"), drawText(t, "b"), drawText(t, "c")
		whole := append(append(append([]byte(nil), a...), b...), c...)
		want := Sum{crc: crc32.ChecksumIEEE(whole), length: uint64(len(whole))}
		for name, got := range map[string]Sum{
			"written":     Sum{}.Write(a).Write(b).Write(c),
			"from left":   SumOf(a).Then(SumOf(b)).Then(SumOf(c)),
			"from right":  SumOf(a).Then(SumOf(b).Then(SumOf(c))),
			"half by one": SumOf(a).Write(b).Then(SumOf(c)),
		} {
			if got != want {
				t.Fatalf("%s: %x, want %x", name, got, want)
			}
		}
	})
}

// TestGap checks that two texts to which the same is appended keep their gap.
func TestGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		member, group := SumOf(drawText(t, "the member's")), SumOf(drawText(t, "the group's"))
		gap := member.Less(group)
		for range rapid.IntRange(0, 5).Draw(t, "pieces") {
			p := drawText(t, "piece")
			member, group = member.Write(p), group.Then(SumOf(p))
			if got := member.Less(group); got != gap {
				t.Fatalf("the gap was %x and is %x", gap, got)
			}
		}
		got := group.Plus(gap)
		if got.crc != member.crc || uint32(got.length) != uint32(member.length) {
			t.Fatalf("%x, want %x", got, member)
		}
	})
}

// TestShiftFar checks lengths that no test can write. A stream lives for days.
func TestShiftFar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		crc := rapid.Uint32().Draw(t, "crc")
		n, m := rapid.Uint64Range(0, 1<<62).Draw(t, "n"), rapid.Uint64Range(0, 1<<62).Draw(t, "m")
		if got := unshift(shift(crc, n), n); got != crc {
			t.Fatalf("there and back by %d: %#x, want %#x", n, got, crc)
		}
		if got, want := shift(shift(crc, n), m), shift(crc, n+m); got != want {
			t.Fatalf("by %d and %d: %#x, want %#x", n, m, got, want)
		}
	})
}

// TestPolynomial checks that x has full order: x to the power of the cofactor of each
// prime factor is not one.
func TestPolynomial(t *testing.T) {
	if got := power(order); got != one {
		t.Fatalf("x^(2^32-1) is %#x, want 1", got)
	}
	for _, factor := range []uint64{3, 5, 17, 257, 65537} { // their product is 2^32-1
		if power(order/factor) == one {
			t.Errorf("x^((2^32-1)/%d) is 1", factor)
		}
	}
}

func BenchmarkThen(b *testing.B) {
	s, piece := SumOf([]byte("before")), SumOf(make([]byte, 64<<10))
	for b.Loop() {
		s = s.Then(piece)
	}
}
