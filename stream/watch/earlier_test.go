package watch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// at is a reader that comes back with a position.
func at(w *Watch, revision uint64) *statusReader {
	return &statusReader{client: client{state: map[string]string{}}, s: w.Subscribe(log.SubscribeOptions{Resume: &stream.Position{Watch: "w", Epoch: "e", Upserts: revision, AsOf: revision}})}
}

// TestDeletesFromBeforeTheStart: a source knows which resources were deleted before the first
// snapshot, so a client resumes from before it. What is taken back in the snapshot itself is a
// delete too. Without the declaration it is none.
func TestDeletesFromBeforeTheStart(t *testing.T) {
	for declared, want := range map[bool][]string{
		true:  {"delete gone@4", "delete taken@6", "upsert new@5", "end_of_snapshot 7 count=2 resumed=true"},
		false: {"reset expired", "upsert old@1", "upsert new@5", "end_of_snapshot 7 count=2 resumed=false"},
	} {
		bubble(t, Config{}, []stream.SourceFunc{
			func(ctx context.Context, r stream.Resume, sink stream.Sink) error {
				err := errors.Join(sink.Reset("e"), sink.Delete("gone", 4), sink.Upsert(upsert("old", 1).Resource),
					sink.Upsert(upsert("taken", 3).Resource), sink.Delete("taken", 6), sink.Upsert(upsert("new", 5).Resource))
				if declared {
					sink.DeletesCompleteAfter(2)
				}
				return errors.Join(err, sink.Commit(7), stay(ctx, r, sink))
			},
		}, func(t *testing.T, w *Watch, _ *script) {
			synctest.Wait()
			expect(t, "resumes", at(w, 2).next(), want...)
			if got := at(w, 1).next(); got[0] != "reset expired" {
				t.Errorf("from before the horizon: %q", got)
			}
		})
	}
}

// TestOutageThatTheUpstreamRemembers ends with a snapshot, and with all deletes since: no position
// expires, and no horizon is announced.
func TestOutageThatTheUpstreamRemembers(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 3, []log.Change{upsert("a", 1), upsert("b", 2)}, stayFor(time.Minute, stream.ErrUnresumable)),
		func(ctx context.Context, r stream.Resume, sink stream.Sink) error {
			err := errors.Join(sink.Reset("e"), sink.Delete("a", 5), sink.Delete("between", 7), sink.Upsert(upsert("b", 6).Resource))
			sink.DeletesCompleteAfter(3)
			return errors.Join(err, sink.Commit(9), stay(ctx, r, sink))
		},
	}, func(t *testing.T, w *Watch, _ *script) {
		r := follow(w)
		r.next()
		time.Sleep(2 * time.Minute)
		expect(t, "stays", r.next(), "bookmark 3 skipped=0", "delete a@5", "upsert b@6", "delete between@7")
		expect(t, "comes back", at(w, 5).next(), "delete between@7", "upsert b@6", "end_of_snapshot 9 count=1 resumed=true")
	})
}

// TestDeletesOfARestoredUpstream: a snapshot that is taken as a new order, since it is older than
// what was served, comes without deletes: the positions that they are for are of the order before.
func TestDeletesOfARestoredUpstream(t *testing.T) {
	restored := func(ctx context.Context, r stream.Resume, sink stream.Sink) error {
		err := errors.Join(sink.Reset("e"), sink.Delete("b", 4), sink.Upsert(upsert("a", 1).Resource))
		sink.DeletesCompleteAfter(2)
		if err := errors.Join(err, sink.Commit(5)); err != nil {
			return err
		}
		return stay(ctx, r, sink)
	}
	bubble(t, Config{BehindTimeout: time.Second}, []stream.SourceFunc{
		snapshotThen("e", 9, []log.Change{upsert("a", 1), upsert("b", 8)}, stayFor(time.Minute, errBroken)), restored,
	}, func(t *testing.T, w *Watch, _ *script) {
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		s := w.Snapshot()
		horizon, _ := s.Horizon()
		if s.Epoch() == "e" || horizon != 5 || s.Tombstones() != 0 {
			t.Errorf("epoch %s, horizon %d and %d tombstones, want another epoch, 5 and 0", s.Epoch(), horizon, s.Tombstones())
		}
	})
}
