package log

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
	"pgregory.net/rapid"
)

// stretchText is a stretch with the bytes that its reader was given.
type stretchText struct {
	stretch Stretch
	text    string
	turns   int
}

// place is all that decides what a reader is given next, and what it reports.
type place struct {
	joined
	delivered
	walk             walk
	told             stream.Status
	walking, synced  bool
	caughtUp, pinned bool
	outcome          ResumeOutcome
	skipped          uint64
}

func placeOf(s *Subscription) place {
	p := place{joined: s.joined, delivered: s.delivered, walking: s.walking(), synced: s.synced, caughtUp: s.CaughtUp(), outcome: s.outcome, skipped: s.skipped, told: *s.sentStatus}
	if p.walking {
		p.walk, p.pinned = *s.walk, s.pin.Version() != nil
		p.walk.examined = 0
	}
	return p
}

// givenText returns what the reader is given, with an id where there is one.
func givenText(s *Subscription, b *Batch) string {
	var id []byte
	if p, _ := s.Position(); b.Boundary() && !s.Uncovered() {
		id = p.Append(nil)
	}
	return string(bytes.Join(b.Append(nil, frame.SSE, id), nil))
}

// recordStretch reads up to so many turns, and returns what was given, and whether it is a stretch.
func recordStretch(s *Subscription, turns int) (stretchText, bool) {
	var b Batch
	r, ok := s.Record()
	if !ok {
		return stretchText{}, false
	}
	one := stretchText{}
	for one.turns < turns {
		if one.turns++; !s.NextTurn(&b) {
			break
		}
		one.text += givenText(s, &b)
		if r.Note(&b); r.Done() {
			break
		}
	}
	one.stretch, ok = r.Stretch()
	return one, ok
}

// stretchLog is a log that changes, and readers at many places of it.
type stretchLog struct {
	*Writer
	t         *rapid.T
	revision  uint64
	readers   []*Subscription
	positions []stream.Position
	known     map[Spot]stretchText
	waited    map[*Subscription]bool // told that they wait for their turn
	taken     int
	byWaiters int // of these
}

func (l *stretchLog) commit(most int) {
	l.revision++
	var changes []Change
	for _, key := range rapid.SliceOfNDistinct(rapid.IntRange(0, 80), 1, most, rapid.ID).Draw(l.t, "keys") {
		c := Change{Resource: stream.Resource{Key: fmt.Sprint("key-", key), Revision: l.revision}}
		if c.Deleted = rapid.IntRange(0, 4).Draw(l.t, "delete") == 0; !c.Deleted {
			c.Value = []byte(`"` + strings.Repeat("v", rapid.IntRange(0, 3000).Draw(l.t, "size")) + `"`)
		}
		changes = append(changes, c)
	}
	if _, err := l.Commit(changes, l.revision); err != nil {
		l.t.Fatal(err)
	}
}

func (l *stretchLog) subscribe() {
	rare := func(what string) bool { return rapid.IntRange(0, 2).Draw(l.t, what) == 0 }
	o := SubscribeOptions{Digest: rare("digest"), Deletes: rare("deletes"), Verify: rare("verify")}
	if len(l.positions) > 0 && rapid.Bool().Draw(l.t, "resume") {
		p := rapid.SampledFrom(l.positions).Draw(l.t, "position")
		o.Resume = &p
	}
	s := l.Subscribe(o)
	l.readers = append(l.readers, s)
	if rapid.Bool().Draw(l.t, "shares") {
		s.Share()
	}
	if rapid.Bool().Draw(l.t, "waits") {
		s.Pause("the snapshot waits for its turn")
		s.NextTurn(&Batch{})
		s.Unpause()
		l.waited[s] = true
	}
}

// read moves a reader to the end of a stretch: if it is known, by taking it, and compares that with a
// reader that reads by itself.
func (l *stretchLog) read(s *Subscription) {
	spot, ok := s.Spot()
	one, known := l.known[spot]
	if !ok || !known {
		if one, made := recordStretch(s, rapid.IntRange(1, 4).Draw(l.t, "turns")); made {
			if !ok {
				l.t.Fatal("there is a stretch where there is no spot")
			}
			l.known[spot] = one
		} else if !ok {
			s.NextTurn(&Batch{})
		}
		return
	}
	l.taken++
	if l.waited[s] {
		l.byWaiters++
	}
	alone := s.fork()
	defer alone.Close()
	var b Batch
	text := ""
	for range one.turns {
		if alone.NextTurn(&b) {
			text += givenText(alone, &b)
		}
	}
	if text != one.text {
		l.t.Fatalf("a reader by itself is given\n%s\nand the stretch has\n%s", text, one.text)
	}
	if !s.Take(spot, &one.stretch, &b) {
		l.t.Fatal("the version of a stretch is gone while its reader is in it")
	}
	if got, want := placeOf(s), placeOf(alone); got != want {
		l.t.Fatalf("a reader that takes a stretch is at\n%+v\nwant\n%+v", got, want)
	}
}

// TestStretches: what a reader is given from a spot on is the same for all readers at it, and
// a reader that takes it is where it would be if it had read by itself.
func TestStretches(t *testing.T) {
	usual := [4]int{storage.FlushSize, storage.ReplaySize, storage.TurnEntries, storage.SegmentSize}
	defer func() {
		storage.FlushSize, storage.ReplaySize, storage.TurnEntries, storage.SegmentSize = usual[0], usual[1], usual[2], usual[3]
	}()
	storage.FlushSize, storage.ReplaySize, storage.TurnEntries, storage.SegmentSize = 4<<10, 8<<10, 8, 4<<10
	taken, byWaiters := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		l := &stretchLog{Writer: NewWriter(Config{Watch: "a"}), t: t, known: map[Spot]stretchText{}, waited: map[*Subscription]bool{}, revision: 1}
		if _, err := l.Replace("e", nil, 1); err != nil {
			t.Fatal(err)
		}
		l.commit(80)
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 11).Draw(t, "step") {
			case 0:
				l.commit(5)
			case 1:
				l.SetStatus(stream.Status{State: stream.Resyncing, Reason: rapid.SampledFrom([]string{"one", "other"}).Draw(t, "reason")})
			case 2:
				l.SetStatus(stream.Status{State: stream.InSync})
			case 3, 4, 5:
				for range 3 {
					l.subscribe()
				}
			case 6:
				if l.revision++; rapid.Bool().Draw(t, "outage") {
					_ = l.RaiseHorizon(l.revision) // it may not be higher
				}
			default:
				for _, s := range l.readers {
					l.read(s)
					if p, placed := s.Position(); placed {
						l.positions = append(l.positions, p)
					}
				}
			}
		}
		for _, s := range l.readers {
			s.Close()
		}
		taken += l.taken
		byWaiters += l.byWaiters
	})
	if taken < 20 || byWaiters < 10 {
		t.Errorf("%d stretches were taken, %d of them by readers that had waited, want more", taken, byWaiters)
	}
}

// TestReadersOfStretchesKeepTheirRate: a stretch counts for the minimum rate as what NextTurn gives does, so a
// reader that is slow loses its version, and with it the stretches.
func TestReadersOfStretchesKeepTheirRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 4 << 10
		r := newPaced(t, rate)
		other := r.s.fork()
		defer other.Close()
		takes := func() {
			t.Helper()
			spot, ok := r.s.Spot()
			if !ok {
				t.Fatal("the reader is at no spot")
			}
			one, ok := recordStretch(other, 2)
			if !ok {
				t.Fatalf("no stretch is recorded: %+v", one)
			}
			if !r.s.Take(spot, &one.stretch, &Batch{}) {
				t.Fatal("a stretch cannot be taken")
			}
			if size := one.stretch.bytes; size < 2*storage.FlushSize/2 {
				t.Fatalf("the stretch has %d bytes", size)
			}
		}
		takes()
		mustCommit(t, r.l, 2001, upsert("new", 2001))
		for range 4 {
			r.pass(30 * time.Second) // a stretch of 128 KiB is worth 32 s
			r.keeps(true)
			takes()
		}
		r.pass(110 * time.Second)
		r.keeps(false)
		if _, ok := r.s.Spot(); ok {
			t.Error("a reader that has lost its version is at a spot")
		}
	})
}
