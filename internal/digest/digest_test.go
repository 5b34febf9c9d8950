package digest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestVectors has the vectors of docs/protocol.md, and published ones of XXH64.
func TestVectors(t *testing.T) {
	for text, want := range map[string]string{
		"":    "ef46db3751d8e999",
		"a":   "d24ec4f1a98c6e5b",
		"abc": "44bc2cf5ad770999",
		"Call me Ishmael. Some years ago--never mind how long precisely-": "02a2e85470d6fd96",
	} {
		x := newXXH64()
		if got := fmt.Sprintf("%016x", x.sum(x.blocks([]byte(text)), len(text))); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	var sum Digest
	for _, v := range vectors {
		h := Of(v.key, []byte(v.value), v.encoding)
		k := OfKey(v.key)
		if got := fmt.Sprintf("%016x %08x", uint64(h), k); got != v.want {
			t.Errorf("%q %s %s: %s, want %s", v.key, v.value, v.encoding, got, v.want)
		}
		sum = sum.Add(h)
	}
	if got, want := sum.String(), "5-00000000000000020e028795aa10cb6f"; got != want {
		t.Errorf("the digest of all is %s, want %s", got, want)
	}
}

var vectors = []struct{ key, value, encoding, want string }{
	{"a", "1", "", "68cd357d0b93fb08 d24ec4f1"},
	{"shopping/milk", `{"text":"two litres"}`, "", "633a42d209907abb 70e8c709"},
	{"b", `"aGk="`, "base64", "82b4160a5f09160c 78452aa1"},
	{"\xff\x00", "null", "", "67fa0b57bccfee4c 232a32cf"},
	{"日本", `"語"`, "", "574cede479135154 80c2e40b"},
}

// TestPieces: what is hashed is the text as a whole, whatever the lengths of its pieces are, and
// where one of them ends matters.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-c]{0,400}`).Draw(t, "text")
		i, j := rapid.IntRange(0, len(text)).Draw(t, "i"), rapid.IntRange(0, len(text)).Draw(t, "j")
		of := func(i int) Hash { return Of(text[i:], []byte(text[:i]), "") }
		if (of(i) == of(j)) != (i == j) {
			t.Errorf("%q divided at %d and at %d: %x and %x", text, i, j, of(i), of(j))
		}
		x, whole := newXXH64(), text[:i]+"\nbase64\n"+text[i:]
		if got, want := Of(text[i:], []byte(text[:i]), "base64"), Hash(x.sum(x.blocks([]byte(whole)), len(whole))); got != want {
			t.Errorf("%q divided at %d: %x, want %x", text, i, got, want)
		}
	})
}

// inverse returns the number that an odd one gives 1 with.
func inverse(n uint64) uint64 {
	x := n
	for range 6 {
		x *= 2 - n*x
	}
	return x
}

// TestCollision: XXH64 can be turned around, so that somebody can make two resources with one hash. Their states have
// the same digest. This is what docs/protocol.md says that a digest does not withstand.
func TestCollision(t *testing.T) {
	text := []byte("1\n\n" + strings.Repeat("a key of two blocks ", 4)[:61]) // the value 1, no encoding, and the key
	other := bytes.Clone(text)
	binary.LittleEndian.PutUint64(other[8:], 0x4141414141414141)
	lane := func(text []byte) uint64 {
		return bits.RotateLeft64(prime2+binary.LittleEndian.Uint64(text[8:])*prime2, 31) * prime1
	}
	second := binary.LittleEndian.Uint64(text[40:]) + (lane(text)-lane(other))*inverse(prime2)
	binary.LittleEndian.PutUint64(other[40:], second) // the second lane is the same again
	one, two := string(text[3:]), string(other[3:])
	a, b := Of(one, []byte("1"), ""), Of(two, []byte("1"), "")
	if one == two || a != b || uint64(a) != plain(text) || uint64(b) != plain(other) {
		t.Fatalf("%q has %x, %q has %x", one, a, two, b)
	}
	if left, right := (Digest{}).Add(a), (Digest{}).Add(b); left != right {
		t.Errorf("digests %v and %v", left, right)
	}
	mine, theirs := NewTable(1), NewTable(1)
	mine.Add(OfKey(one), a)
	theirs.Add(OfKey(two), b)
	if got, err := mine.Differing(theirs.Bytes()); err != nil || len(got) > 0 {
		t.Errorf("buckets %v differ, %v", got, err)
	}
}

// TestCountIsCompared: a resource with the hash 0 does not change the sum. The count tells that it is missing.
func TestCountIsCompared(t *testing.T) {
	text := []byte("1\n\nzero" + strings.Repeat(".", 9)) // 16 bytes: two words
	word := bits.RotateLeft64(uint64(prime5)+16^round(0, binary.LittleEndian.Uint64(text)), 27)*prime1 + prime4
	// The last word makes 0 of it: it is taken back step by step.
	p4 := uint64(prime4)
	last := bits.RotateLeft64(-p4*inverse(prime1), -27) ^ word
	last = bits.RotateLeft64(last*inverse(prime1), -31) * inverse(prime2)
	binary.LittleEndian.PutUint64(text[8:], last)
	zero := Of(string(text[3:]), []byte("1"), "")
	if zero != 0 || plain(text) != 0 {
		t.Fatalf("the hash is %x", zero)
	}
	h := Of("a", []byte("1"), "")
	without := Digest{}.Add(h)
	with := without.Add(zero)
	if with == without || with.Lo != without.Lo || with.Hi != without.Hi {
		t.Errorf("digests %v and %v: want two that differ in the count alone", with, without)
	}
	mine, theirs := NewTable(2), NewTable(2)
	mine.Add(OfKey("a"), h)
	theirs.Add(OfKey("a"), h)
	theirs.Add(OfKey(string(text[3:])), zero)
	if got, err := mine.Differing(theirs.Bytes()); err != nil || len(got) != 1 {
		t.Errorf("buckets %v differ, %v", got, err)
	}
}

// plain is XXH64 with the seed 0 as its specification has it, step by step.
func plain(text []byte) uint64 {
	word := func(n int) (w uint64) {
		for i := range n {
			w |= uint64(text[i]) << (8 * i)
		}
		text = text[n:]
		return w
	}
	round := func(v, w uint64) uint64 { return bits.RotateLeft64(v+w*prime2, 31) * prime1 }
	length, h := uint64(len(text)), uint64(prime5)
	if length >= 32 {
		lanes := [4]uint64{prime1, prime2, 0, 0}
		lanes[0] += prime2
		lanes[3] -= prime1
		for len(text) >= 32 {
			for i := range lanes {
				lanes[i] = round(lanes[i], word(8))
			}
		}
		h = 0
		for i, by := range []int{1, 7, 12, 18} {
			h += bits.RotateLeft64(lanes[i], by)
		}
		for _, v := range lanes {
			h = (h^round(0, v))*prime1 + prime4
		}
	}
	h += length
	for len(text) >= 8 {
		h = bits.RotateLeft64(h^round(0, word(8)), 27)*prime1 + prime4
	}
	if len(text) >= 4 {
		h = bits.RotateLeft64(h^word(4)*prime1, 23)*prime2 + prime3
	}
	for len(text) > 0 {
		h = bits.RotateLeft64(h^word(1)*prime5, 11) * prime1
	}
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}

// FuzzOf compares a hash with what the specification says, step by step.
func FuzzOf(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.key, []byte(v.value), v.encoding)
	}
	for n := range 100 {
		f.Add("key", bytes.Repeat([]byte("0123456789"), n)[:7*n], "")
	}
	f.Fuzz(func(t *testing.T, key string, value []byte, encoding string) {
		text := fmt.Appendf(nil, "%s\n%s\n%s", value, encoding, key)
		if got, want := Of(key, value, encoding), Hash(plain(text)); got != want {
			t.Errorf("%q: %x, want %x", text, got, want)
		}
		if got, want := OfKey(key), uint32(plain([]byte(key))>>32); got != want {
			t.Errorf("key %q: %x, want %x", key, got, want)
		}
	})
}

// TestSum: the digest is that of the set, in whatever order it came to be.
func TestSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hashes := rapid.SliceOf(rapid.Uint64()).Draw(t, "hashes")
		var forth, back Digest
		for i := range hashes {
			forth = forth.Add(Hash(hashes[i]))
			back = back.Add(Hash(hashes[len(hashes)-1-i]))
		}
		if forth != back {
			t.Fatalf("%v and %v", forth, back)
		}
		if again, err := Parse(forth.String()); err != nil || again != forth {
			t.Errorf("%v is parsed as %v, %v", forth, again, err)
		}
		for _, h := range hashes {
			forth = forth.Sub(Hash(h))
		}
		if forth != (Digest{}) {
			t.Errorf("nothing is left, and its digest is %v", forth)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "-", "1", "1-", "1-00", "01-" + strings.Repeat("0", 32), "+1-" + strings.Repeat("0", 32),
		"1-" + strings.Repeat("A", 32), "1-" + strings.Repeat("g", 32), "1-" + strings.Repeat("0", 33), "99999999999999999999-" + strings.Repeat("0", 32),
	} {
		if d, err := Parse(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
}

// TestTable: the buckets that differ are those of the keys that differ.
func TestTable(t *testing.T) {
	const n = 10_000
	mine, theirs := NewTable(n), NewTable(n)
	want := map[int]bool{}
	sizes := make([]int, Buckets(n))
	for i := range n {
		key := fmt.Sprint("key-", i)
		k := OfKey(key)
		h := Of(key, []byte("1"), "")
		mine.Add(k, h)
		if i%1000 == 7 {
			h = Of(key, []byte("2"), "")
			want[mine.Bucket(k)] = true
		}
		theirs.Add(k, h)
		sizes[mine.Bucket(k)]++
	}
	got, err := mine.Differing(theirs.Bytes())
	if err != nil || len(got) != len(want) {
		t.Errorf("%v, %v: want %d buckets", got, err, len(want))
	}
	for _, b := range got {
		if !want[b] {
			t.Errorf("bucket %d does not differ", b)
		}
	}
	for i, size := range sizes {
		if size == 0 || size > 40 {
			t.Errorf("bucket %d has %d keys", i, size)
		}
	}
	for count, want := range map[uint64]int{0: 1, 1: 1, 16: 1, 17: 2, 100_000: 6250, 1 << 18: 1 << 14, 1<<18 + 1: 1 << 14, 1 << 63: 1 << 14} {
		if got := Buckets(count); got != want {
			t.Errorf("a state of %d resources has %d buckets, want %d", count, got, want)
		}
	}
	if _, err := mine.Differing(nil); err == nil {
		t.Error("a table of no bytes was compared")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("3-000000000000000000000000000000ff")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := Parse(text); err == nil && d.String() != text {
			t.Errorf("%q is parsed, and written as %q", text, d)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	for _, size := range []int{30, 300, 3000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			value := []byte(strings.Repeat("x", size))
			b.SetBytes(int64(size))
			for b.Loop() {
				_ = Of("some/key/of/a/resource", value, "")
			}
		})
	}
}
