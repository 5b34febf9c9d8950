package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/disk/disktest"
	"pgregory.net/rapid"
)

// filled makes a file with some history, and returns what it has.
func filled(t testing.TB, path string, transactions int, random *rand.Rand) content {
	f := mustOpen(t, path)
	for n := range transactions {
		values := map[string]string{}
		for range 1 + random.IntN(8) {
			value := ""
			if random.IntN(4) > 0 {
				value = strings.Repeat(fmt.Sprintf("v%d,", n), 1+random.IntN(300))
			}
			values[fmt.Sprint("key", random.IntN(60))] = value
		}
		mustPut(t, f, uint64(n+1), values)
	}
	want := mustRead(t, f)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return want
}

// openCopy opens a file with other bytes, and returns what it has.
func openCopy(path string, raw []byte) (c content, err error) {
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return c, err
	}
	f, err := Open(config(path))
	if err != nil {
		return c, err
	}
	defer f.Close()
	return read(f)
}

// TestDamageIsNeverServed: whatever happens to the bytes of a file, it has what it had, or an
// earlier state, or it is refused; and nothing ends the process.
func TestDamageIsNeverServed(t *testing.T) {
	dir := t.TempDir()
	want := filled(t, dir+"/a.db", 40, rand.New(rand.NewPCG(1, 2)))
	whole, err := os.ReadFile(dir + "/a.db")
	if err != nil {
		t.Fatal(err)
	}
	path, refused := dir+"/copy.db", 0
	rapid.Check(t, func(t *rapid.T) {
		raw := append([]byte{}, whole...)
		switch rapid.SampledFrom([]string{"bits", "zeros", "page", "end", "text"}).Draw(t, "damage") {
		case "bits":
			for range rapid.IntRange(1, 4).Draw(t, "bits") {
				raw[rapid.IntRange(0, len(raw)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			}
		case "zeros":
			at := rapid.IntRange(0, len(raw)/512-1).Draw(t, "sector") * 512
			clear(raw[at : at+512])
		case "page": // one is written to the place of another
			pages := len(raw)/4096 - 1
			from, to := rapid.IntRange(0, pages).Draw(t, "from"), rapid.IntRange(0, pages).Draw(t, "to")
			copy(raw[to*4096:(to+1)*4096], whole[from*4096:(from+1)*4096])
		case "end":
			raw = raw[:rapid.IntRange(1, len(raw)-1).Draw(t, "length")]
		case "text":
			at := rapid.IntRange(0, len(raw)-64).Draw(t, "at")
			copy(raw[at:], rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, "bytes"))
		}
		got, err := openCopy(path, raw)
		var damaged *DamagedError
		switch {
		case errors.As(err, &damaged):
			refused++
			if damaged.What == "" || !strings.Contains(err.Error(), path) {
				t.Errorf("error %q: want the path and the place", err)
			}
		case err != nil: // its header may say anything
			refused++
		case got.sequence == want.sequence && !got.equal(want):
			t.Errorf("%d values at %d are served, want %d", len(got.values), got.sequence, len(want.values))
		case got.sequence > want.sequence:
			t.Errorf("it is at %d, it was at %d", got.sequence, want.sequence)
		}
	})
	if refused == 0 {
		t.Error("no damage was found: the test damages nothing")
	}
}

// FuzzVerify: no file makes it panic, or read without end.
func FuzzVerify(f *testing.F) {
	dir := f.TempDir()
	filled(f, dir+"/a.db", 10, rand.New(rand.NewPCG(3, 4)))
	whole, err := os.ReadFile(dir + "/a.db")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte{1})
	f.Add(uint32(4096*3+8), []byte{2, 0, 255, 255})
	f.Fuzz(func(t *testing.T, at uint32, with []byte) {
		raw := append([]byte{}, whole...)
		copy(raw[int(at)%len(raw):], with)
		_, _ = openCopy(t.TempDir()+"/a.db", raw)
	})
}

// TestPowerLoss: between two syncs the disk may write any of the sectors that were given to it, in any
// order, and may leave them unwritten. The state after the loss is that of the last transaction that was
// answered, or of the one under way, whole.
func TestPowerLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "disk")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := dir + "/a.db"
		f, err := Open(config(path))
		if err != nil {
			t.Fatal(err)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		random := rand.New(rand.NewPCG(seed, 0))
		before, after, states := lastTransaction(t, f, path, random, rapid.IntRange(1, 20).Draw(t, "transactions"))
		_ = f.Close()
		lost := disktest.Lose(before, after, random, rapid.SampledFrom([]disktest.Phase{disktest.Data, disktest.Meta}).Draw(t, "phase"))
		got, err := openCopy(path, lost)
		if err != nil {
			t.Fatalf("after a loss of power: %v", err)
		}
		if !got.equal(states[0]) && !got.equal(states[1]) {
			t.Fatalf("%d values at %d, want the state at %d or %d", len(got.values), got.sequence, states[0].sequence, states[1].sequence)
		}
	})
}

// lastTransaction makes transactions, and returns the bytes of the file, and what it has, before and
// after the last one.
func lastTransaction(t *rapid.T, f *File, path string, random *rand.Rand, n int) (before, after []byte, states [2]content) {
	for i := range n + 1 {
		values := map[string]string{}
		for range 1 + random.IntN(6) {
			values[fmt.Sprint("key", random.IntN(30))] = strings.Repeat("v", random.IntN(3000))
		}
		if err := put(f, uint64(i+1), values); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := read(f)
		if err != nil {
			t.Fatal(err)
		}
		before, after, states = after, raw, [2]content{states[1], c}
	}
	return before, after, states
}
