package histories

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/journal"
	"github.com/watchtide/watchtide/internal/storage"
)

var (
	number   = flag.Uint64("histories", 200, "how many histories are played")
	limit    = flag.Duration("for", 0, "how long histories are played at most; 0: until all are")
	first    = flag.Uint64("seed", 0, "the seed of the first history, the others follow; 0: the clock")
	progress = flag.Duration("progress", time.Minute, "how often progress is reported")
	deletes  = flag.Int("deletes", -1, "the streamtest.DeleteRevisions of all upstreams; -1: any")
	behind   = flag.Int("others", 2, "how many gateways there are at most behind those that follow the upstream")
	detours  = flag.Bool("detours", false, "all histories have two gateways that follow the upstream, between which clients go back and forth, and no views, principals, journals or networks")
	all      = flag.Bool("all", false, "build all mutants, and not only the twelfth that is due today, without those that take minutes to find")
	wide     = flag.Bool("wide", false, "all histories have many keys, and transactions that take a while")
	windows  = flag.Bool("windows", false, "all histories have windows and counts, which all clients follow")
	repairs  = flag.Bool("repairs", false, "all histories have programs with the Go client, and make clients and these verify what they have")
	keep     = flag.Bool("journals", false, "all histories have journals")
	longest  = flag.Duration("longest", 5*time.Minute, "how long a history may take, of which most take milliseconds, and few some seconds")
	patience = flag.Duration("shrink", 20*time.Second, "how long a smaller failing history is searched for")
)

// TestHistories plays histories, each from its own seed. The order of goroutines
// that could run at the same moment is not part of the seed: a failed history may
// have to be played several times.
func TestHistories(t *testing.T) {
	if *first == 0 {
		*first = uint64(time.Now().UnixNano()) >> 10
	}
	p := &players{t: t, began: time.Now(), told: time.Now()}
	for begin := uint64(0); begin < *number && !p.over(); begin = p.until {
		p.until = min(*number, begin+shareSizes-(*first+begin)%shareSizes)
		p.taken.Store(begin)
		divide(*first + begin)
		t.Run("seeds", func(t *testing.T) {
			for range runtime.GOMAXPROCS(0) {
				t.Run("", func(t *testing.T) {
					t.Parallel()
					p.play(t)
				})
			}
		})
	}
	t.Log(p.summary(), &reached)
}

// shareSizes is how many seeds in a row share the sizes at which what is sent is divided.
const shareSizes = 64

// usual are the sizes of the real ones.
var usual = [4]int{storage.FlushSize, storage.ReplaySize, storage.TurnEntries, storage.SegmentSize}

// divide sets the sizes for a seed. Most are small: with few and short events, readers take
// several flushes for a transaction, and for the deletes of a catch-up, and logs are compacted. Journals
// write a state in several transactions, and forget deletes early.
func divide(seed uint64) {
	all := [][4]int{{400, 900, 4, 600}, {1000, 2500, 6, 2500}, usual, {700, 6000, 3, 400}}
	of := all[seed/shareSizes%uint64(len(all))]
	storage.FlushSize, storage.ReplaySize, storage.TurnEntries, storage.SegmentSize = of[0], of[1], of[2], of[3]
	journal.TransactionBytes, journal.SweptFrom = of[0], uint64(of[2])
}

// over reports whether no more histories are to be played.
func (p *players) over() bool { return p.failed.Load() || *limit > 0 && time.Since(p.began) > *limit }

// players play histories concurrently.
type players struct {
	t     *testing.T
	began time.Time
	told  time.Time // guarded by telling

	until         uint64 // the number of the first history that is not to be played now
	taken, played atomic.Uint64
	failed        atomic.Bool
	telling       atomic.Bool
}

func (p *players) play(t *testing.T) {
	for !p.over() {
		n := p.taken.Add(1) - 1
		if n >= p.until {
			return
		}
		c := seeded(*first + n)
		ended := mustEnd(*first + n)
		report, err := run(t, c)
		ended()
		if err != nil && !p.failed.Swap(true) {
			t.Error(smallest(t, *first+n, c.made, report))
			return
		}
		p.played.Add(1)
		p.tell()
	}
}

// mustEnd ends the process if a history goes on for too long, unless the returned function is called before. One in which
// something goes on without end, and without time that passes, would otherwise be seen only as a test that hangs, and takes ever
// more memory.
func mustEnd(seed uint64) (ended func()) {
	timer := time.AfterFunc(*longest, func() {
		panic(fmt.Sprintf("seed %d: the history has not ended after %v: something goes on, and no time passes in it", seed, *longest))
	})
	return func() { timer.Stop() }
}

// tell reports the progress from time to time.
func (p *players) tell() {
	if !p.telling.CompareAndSwap(false, true) {
		return
	}
	defer p.telling.Store(false)
	if time.Since(p.told) >= *progress {
		p.told = time.Now()
		fmt.Println(p.summary())
	}
}

func (p *players) summary() string {
	took, played := time.Since(p.began), p.played.Load()
	return fmt.Sprintf("%d histories, seeds %d to %d, in %v: %.0f a minute",
		played, *first, *first+played-1, took.Round(time.Second), float64(played)/took.Minutes())
}

// smallest reports the smallest history that fails.
func smallest(t *testing.T, seed uint64, made []int, report string) string {
	kind, _, _ := strings.Cut(report, ":")
	played := len(made)
	made = shrink(made, func(candidate []int) bool {
		smaller, err := run(t, chosen(candidate))
		if err == nil || !strings.HasPrefix(smaller, kind) {
			return false
		}
		report = smaller
		return true
	}, *patience)
	return fmt.Sprintf("seed %d (%d choices, of which %d are enough): %s", seed, played, len(made), report)
}

// run plays a history, and returns a report of the failure.
func run(t *testing.T, c *choices) (report string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("panic")
			report = fmt.Sprintf("panic: %v", p)
		}
	}()
	synctest.Test(t, func(*testing.T) {
		w := newWorld(c)
		if err = w.play(); err != nil {
			report = w.report(err)
		}
	})
	return report, err
}
