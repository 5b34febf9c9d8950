package disktest

import "testing"

// TestMemoryOf: what was freed before does not count, and what is freed meanwhile does.
func TestMemoryOf(t *testing.T) {
	const size = 64 << 20
	touch := func() byte {
		b := make([]byte, size)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		return b[len(b)/2]
	}
	touch()
	m, err := MemoryOf(func() { touch() })
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]int64{"resident": m.Resident, "anonymous": m.Anonymous} {
		if got < size*9/10 || got > size*2 {
			t.Errorf("%d bytes %s, want about %d", got, what, size)
		}
	}
	if none, err := MemoryOf(func() {}); err != nil || none.Resident > size/4 {
		t.Errorf("%d bytes of a function that takes none, error %v", none.Resident, err)
	}
}
