package log

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log/internal/pin"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// TestShare: a reader begins in the version in which others have begun a moment ago, and then follows. It does not if it knows of
// something newer, if that version is too old, if something was forgotten or an outage was found since, or if it
// does not share.
func TestShare(t *testing.T) {
	usual := storage.FlushSize
	defer func() { storage.FlushSize = usual }()
	storage.FlushSize = 1 << 10
	at := func(epoch string, revision uint64) *stream.Position {
		return &stream.Position{Watch: "a", Epoch: epoch, Upserts: revision, AsOf: revision}
	}
	for _, test := range []struct {
		name   string
		resume *stream.Position
		before func(*Writer) // the reader comes
		alone  bool
		want   uint64 // revision of the snapshot
	}{
		{name: "without a position", want: 100},
		{name: "from another order", resume: at("other", 500), want: 100},
		{name: "from before the horizon", resume: at("e", 1), want: 100},
		{name: "alone", alone: true, want: 101},
		{name: "late", before: func(*Writer) { time.Sleep(pin.BeginsWithin + time.Millisecond) }, want: 101},
		{name: "after an outage", before: func(w *Writer) { _ = w.RaiseHorizon(101) }, want: 101},
		{name: "from what is newer, and unknown", resume: at("e", 500), want: 101},
		{name: "after a snapshot of another order", before: func(w *Writer) {
			var all []Change
			for i := range 101 {
				all = append(all, upsert(fmt.Sprint("key-", i), uint64(i+1)))
			}
			mustReplace(t, w, "f", 200, all...)
		}, want: 200},
		{name: "while the freshness is another one", before: func(w *Writer) { w.SetStatus(stream.Status{State: stream.Stale, Reason: "lost"}) }, want: 101},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := NewWriter(Config{Watch: "a"})
				var all []Change
				for i := range 100 {
					all = append(all, upsert(fmt.Sprint("key-", i), uint64(i+1)))
				}
				mustReplace(t, w, "e", 100, all...)
				inSync(w)
				first := w.Subscribe(SubscribeOptions{})
				defer first.Close()
				first.Share()
				var b Batch
				first.NextTurn(&b)
				mustCommit(t, w, 101, upsert("new", 101))
				if test.before != nil {
					test.before(w)
				}
				s := w.Subscribe(SubscribeOptions{Resume: test.resume, AheadWait: time.Millisecond})
				defer s.Close()
				if !test.alone {
					s.Share()
				}
				revision, upserts := uint64(0), 0
				for turn := 0; turn < 2; turn++ {
					if !s.Next(&b) {
						time.Sleep(2 * time.Millisecond) // it may wait for the log to reach its position
						continue
					}
					turn = -1
					for e := range b.Events() {
						switch e.Type {
						case stream.EndOfSnapshot:
							revision = e.Revision
						case stream.Upsert:
							upserts++
						}
					}
				}
				if p, _ := s.Position(); revision != test.want || upserts != 101 || p.AsOf < 101 {
					t.Errorf("a reader is sent the state at revision %d, %d resources, and is at %v; want %d, 101", revision, upserts, p, test.want)
				}
			})
		})
	}
}
