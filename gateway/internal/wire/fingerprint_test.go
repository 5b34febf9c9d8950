package wire

import (
	"bytes"
	"testing"
)

// TestFingerprint: equal texts have the same name, others have not, and each cache has names of its own.
func TestFingerprint(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	for name, f := range map[string]fingerprint{"keyed": newFingerprint(), "fips": {}} {
		if !bytes.Equal(f.of(text), f.of(bytes.Clone(text))) {
			t.Errorf("%s: the same text has two names", name)
		}
		seen := map[string]string{string(f.of(text)): "the text"}
		for what, other := range map[string][]byte{
			"nothing": nil, "a zero": {0}, "two zeros": {0, 0}, "a shorter one": text[:len(text)-1], "one more zero": append(bytes.Clone(text), 0),
			"blocks in another order": append(append([]byte("x"), text[16:32]...), text[:16]...),
			"another first byte":      append([]byte("1"), text[1:]...),
			"another last byte":       append(bytes.Clone(text[:len(text)-1]), 'g'),
		} {
			at := string(f.of(other))
			if same := seen[at]; same != "" {
				t.Errorf("%s: %s and %s have the same name", name, what, same)
			}
			seen[at] = what
		}
	}
	if a, b := newFingerprint(), newFingerprint(); a.aead == nil || bytes.Equal(a.of(text), b.of(text)) {
		t.Error("two caches have the same key, or none")
	}
}

func BenchmarkFingerprint(b *testing.B) {
	text := make([]byte, codedPiece)
	for name, f := range map[string]fingerprint{"keyed": newFingerprint(), "fips": {}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				f.of(text)
			}
		})
	}
}
