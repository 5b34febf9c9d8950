package access

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func key(b byte) SealKey { return SealKey(append(bytes.Repeat([]byte{b}, keySize-1), b+1)) }

const enough = 1 << 12

// TestSealedValueIsOpenedForItsPurpose, with any of the keys, and by nobody else.
func TestSealedValueIsOpenedForItsPurpose(t *testing.T) {
	old, both, other := NewKeyRing([]SealKey{key(1)}), NewKeyRing([]SealKey{key(2), key(1)}), NewKeyRing([]SealKey{key(3)})
	sealed := old.Seal(Session, []byte("value"))
	for name, r := range map[string]*KeyRing{"the same": old, "a newer": both} {
		got, key, err := r.Open(Session, sealed, enough)
		if err != nil || string(got) != "value" {
			t.Errorf("%s ring opens %q, %v", name, got, err)
		}
		if !old.Opens(Session, key) || !both.Opens(Session, key) || other.Opens(Session, key) || old.Opens(Ticket, key) {
			t.Errorf("%s ring names the key %q, which does not tell who opens what", name, key)
		}
	}
	if _, _, err := old.Open(Session, both.Seal(Session, nil), enough); !errors.Is(err, ErrNotOurs) {
		t.Errorf("an older ring opens what the first key of a newer one sealed: %v", err)
	}
	if _, _, err := other.Open(Session, sealed, enough); !errors.Is(err, ErrNotOurs) {
		t.Errorf("a foreign ring: %v", err)
	}
	for _, p := range []SealPurpose{Ticket, Identity, Position, "session "} {
		if _, _, err := old.Open(p, sealed, enough); !errors.Is(err, ErrNotOurs) {
			t.Errorf("opened for %q: %v", p, err)
		}
	}
}

func TestRingWithoutKeysIsItsOwn(t *testing.T) {
	a, b := NewKeyRing(nil), NewKeyRing(nil)
	sealed := a.Seal(Session, []byte("value"))
	if _, _, err := a.Open(Session, sealed, enough); err != nil {
		t.Error(err)
	}
	if _, _, err := b.Open(Session, sealed, enough); err == nil {
		t.Error("two processes have the same random key")
	}
}

// TestSealedValueCannotBeChanged, not in a single bit, nor be written in another way.
func TestSealedValueCannotBeChanged(t *testing.T) {
	r := NewKeyRing([]SealKey{key(1)})
	sealed := r.Seal(Ticket, []byte("v"))
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		for bit := range 8 {
			raw[i] ^= 1 << bit
			if _, _, err := r.Open(Ticket, base64.RawURLEncoding.EncodeToString(raw), enough); err == nil {
				t.Errorf("opened with bit %d of byte %d changed", bit, i)
			}
			raw[i] ^= 1 << bit
		}
	}
	for _, other := range []string{"", sealed[1:], sealed[:len(sealed)-1], sealed + "A", sealed + "=", "\n" + sealed, sealed + "\n", sealed[:9] + "\r\n" + sealed[9:]} {
		if _, _, err := r.Open(Ticket, other, enough); err == nil {
			t.Errorf("opened %q", other)
		}
	}
}

func TestSealedLengthIsKnownAndLimited(t *testing.T) {
	r := NewKeyRing([]SealKey{key(1)})
	for n := range 50 {
		sealed := r.Seal(Ticket, make([]byte, n))
		if len(sealed) != SealedLen(n) {
			t.Errorf("%d bytes are sealed in %d, want %d", n, len(sealed), SealedLen(n))
		}
		if _, _, err := r.Open(Ticket, sealed, len(sealed)); err != nil {
			t.Error(err)
		}
		if _, _, err := r.Open(Ticket, sealed, len(sealed)-1); err == nil || !strings.Contains(err.Error(), "at most") {
			t.Errorf("longer than allowed: %v", err)
		}
	}
}

func TestTags(t *testing.T) {
	old, both, other := NewKeyRing([]SealKey{key(1)}), NewKeyRing([]SealKey{key(2), key(1)}), NewKeyRing([]SealKey{key(3)})
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		tag := old.Tag(Identity, a)
		if (tag == old.Tag(Identity, b)) != (a == b) {
			t.Fatalf("%q and %q: equal tags", a, b)
		}
		if !both.HasTag(Identity, a, tag) || other.HasTag(Identity, a, tag) || both.HasTag(Position, a, tag) {
			t.Fatalf("%q: the tag is not that of the value, the key and the purpose", a)
		}
		if a != "" && strings.Contains(tag, a) && len(a) > 8 {
			t.Fatalf("%q shows in its tag", a)
		}
	})
	if old.HasTag(Identity, "a", "") {
		t.Error("an empty tag is a tag")
	}
}

func TestParseKey(t *testing.T) {
	k := key(200)
	for _, text := range []string{
		hex.EncodeToString(k[:]), strings.ToUpper(hex.EncodeToString(k[:])) + "\n", " " + base64.StdEncoding.EncodeToString(k[:]) + "\r\n",
		base64.RawStdEncoding.EncodeToString(k[:]), base64.URLEncoding.EncodeToString(k[:]), base64.RawURLEncoding.EncodeToString(k[:]),
	} {
		if got, err := ParseSealKey([]byte(text)); err != nil || got != k {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "secret", hex.EncodeToString(k[:31]), hex.EncodeToString(k[:]) + "00", strings.Repeat("0", 64), strings.Repeat("A", 43)} {
		if _, err := ParseSealKey([]byte(text)); err == nil || !strings.Contains(err.Error(), WantSealKey) || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if a, b := NewSealKey(), NewSealKey(); a == b {
		t.Error("two new keys are equal")
	} else if _, err := ParseSealKey([]byte(a)); err != nil {
		t.Error(err)
	}
}

func TestKeyIsNeverShown(t *testing.T) {
	k := key(65) // A
	var out strings.Builder
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", k, "keys", []SealKey{k})
	fmt.Fprintf(&out, "%v %+v %#v %s %x %d %q", k, k, k, k, k, k, []SealKey{k})
	for _, shown := range []string{"AAAA", "4141", "65 65", "65,65", "0x41"} {
		if strings.Contains(out.String(), shown) {
			t.Errorf("shown: %s", out.String())
		}
	}
}

// FuzzOpen looks for text that opens although nobody sealed it.
func FuzzOpen(f *testing.F) {
	r := NewKeyRing([]SealKey{key(1), key(2)})
	f.Add("")
	f.Add(r.Seal(Session, []byte("value")))
	f.Add(strings.Repeat("A", SealedLen(0)))
	f.Fuzz(func(t *testing.T, text string) {
		if value, _, err := r.Open(Ticket, text, enough); err == nil {
			t.Errorf("%q opens as %q", text, value)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	r := NewKeyRing([]SealKey{key(1)})
	sealed := r.Seal(Session, make([]byte, 400))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := r.Open(Session, sealed, enough); err != nil {
			b.Fatal(err)
		}
	}
}
