package epoll

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// socketPair is a pair of connected sockets.
type socketPair struct{ in, out int }

func newSocketPair(t *testing.T) socketPair {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Close(fds[0])
		unix.Close(fds[1])
	})
	return socketPair{fds[0], fds[1]}
}

// carried reads what was sent.
func (w socketPair) carried(t *testing.T) []byte {
	t.Helper()
	var got []byte
	for p := make([]byte, 64<<10); ; {
		n, err := unix.Read(w.out, p)
		if errors.Is(err, unix.EAGAIN) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p[:n]...)
	}
}

func slabOf(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// TestSlabFileSecondTime checks that a slab is sent from the file from the second
// time on, and so is the rest of one that was sent in part.
func TestSlabFileSecondTime(t *testing.T) {
	f, w, slab := newSlabFile(), newSocketPair(t), slabOf(20<<10)
	if _, _, there := f.send(w.in, slab); there {
		t.Fatal("a slab was in the file the first time")
	}
	for _, from := range []int{0, 1000, 4000} {
		n, err, there := f.send(w.in, slab[from:])
		if !there || err != nil {
			t.Fatalf("from %d: there %v, error %v", from, there, err)
		}
		if got := w.carried(t); n != len(slab)-from || !bytes.Equal(got, slab[from:]) {
			t.Errorf("from %d: %d bytes arrived of %d, or not the same", from, len(got), len(slab)-from)
		}
	}
	if _, _, there := f.send(w.in, slab[5<<10:]); there {
		t.Error("a small rest was worth a call of its own")
	}
}

// TestSlabFileReuse checks that a page is reused for another slab while the bytes of
// the previous one may still be in flight.
func TestSlabFileReuse(t *testing.T) {
	f := newSlabFile()
	f.budget = slabFilePage
	old, young, w := slabOf(30<<10), slabOf(30<<10), newSocketPair(t)
	for range 2 {
		f.send(w.in, old) // in flight for the second time, and unread
	}
	f.send(w.in, young)
	if _, _, there := f.send(w.in, young); there {
		t.Fatal("a slab in use was evicted")
	}
	f.mu.Lock()
	f.forget(time.Now().Add(time.Hour))
	f.mu.Unlock()
	if _, err, there := f.send(w.in, young); !there || err != nil {
		t.Fatalf("the page is not reused: %v", err)
	}
	if got := w.carried(t); !bytes.Equal(got, append(bytes.Clone(old), young...)) {
		t.Error("other bytes arrived than were sent")
	}
}

// TestSlabFileFreesMemory checks that the memory is freed after a while without
// use.
func TestSlabFileFreesMemory(t *testing.T) {
	f, w, slab := newSlabFile(), newSocketPair(t), slabOf(60<<10)
	for range 2 {
		f.send(w.in, slab)
	}
	if blocks(t, f.file) == 0 {
		t.Fatal("nothing is in the file")
	}
	f.mu.Lock()
	for _, page := range f.pages {
		page.used.Store(time.Now().Add(-time.Hour).UnixNano())
	}
	f.mu.Unlock()
	f.sweepUnused()
	if n := blocks(t, f.file); n != 0 || len(f.pages) != 0 {
		t.Errorf("%d blocks and %d pages are left", n, len(f.pages))
	}
}

func blocks(t *testing.T, f *os.File) int64 {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		t.Fatal(err)
	}
	return s.Blocks
}

// TestWriteAllMixed checks that slabs from the file and slices from elsewhere arrive
// in order, even if the connection takes them in parts.
func TestWriteAllMixed(t *testing.T) {
	p, err := SystemSockets(nil).NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Shut()
	slabs := [][]byte{slabOf(40 << 10), slabOf(64 << 10), slabOf(9 << 10), slabOf(17 << 10)}
	for round := range 50 {
		w := newSocketPair(t)
		var out [][]byte
		for range 1 + rand.IntN(20) {
			out = append(out, slabOf(1+rand.IntN(300)), slabs[rand.IntN(len(slabs))])
		}
		want := bytes.Join(out, nil)
		var got []byte
		for len(out) > 0 {
			n, err := p.WriteAll(Handle(w.in), out, false)
			if err != nil && !errors.Is(err, ErrBlocked) {
				t.Fatal(err)
			}
			out = unsent(out, n)
			got = append(got, w.carried(t)...)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("round %d: other bytes arrived than were sent", round)
		}
	}
}

// unsent returns what is left of the slices after n bytes.
func unsent(slices [][]byte, n int) [][]byte {
	for len(slices) > 0 && n >= len(slices[0]) {
		n -= len(slices[0])
		slices = slices[1:]
	}
	if n > 0 {
		slices[0] = slices[0][n:]
	}
	return slices
}

// TestHugeFiles checks how the kernel's setting is read.
func TestHugeFiles(t *testing.T) {
	for chosen, want := range map[string]bool{"always": true, "within_size": true, "force": true, "advise": false, "never": false, "deny": false} {
		text := strings.Replace("always within_size advise never deny force\n", chosen, "["+chosen+"]", 1)
		path := filepath.Join(t.TempDir(), "shmem_enabled")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if hugeFiles(path) != want {
			t.Errorf("%q: huge pages %v, want %v", text, !want, want)
		}
	}
	if hugeFiles(filepath.Join(t.TempDir(), "missing")) {
		t.Error("huge pages where the kernel has none")
	}
}
