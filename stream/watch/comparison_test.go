package watch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// TestComparison: a state that has another digest than the upstream's is counted, and a snapshot that contradicts it is then
// taken over at once, as a new epoch.
func TestComparison(t *testing.T) {
	was := []log.Change{upsert("a", 1), upsert("b", 2)}
	var same digest.Digest
	for _, c := range was {
		same = same.Add(digest.Of(c.Key, c.Value, c.Encoding))
	}
	other := upsert("b", 2)
	other.Value = []byte("2")
	const wrong = "5-00000000000000020e028795aa10cb6f"
	for name, c := range map[string]struct {
		digest   string
		next     []log.Change
		revision uint64
		renamed  bool
		behind   bool
	}{
		"equal":                            {same.String(), was, 2, false, false},
		"equal, and it contradicts":        {same.String(), []log.Change{upsert("a", 1), other}, 2, false, true},
		"differs, and nothing was wrong":   {wrong, was, 2, false, false},
		"differs, and something is new":    {wrong, append(was, upsert("c", 3)), 3, false, false},
		"differs, and a value was wrong":   {wrong, []log.Change{upsert("a", 1), other}, 2, true, false},
		"differs, and a delete was lost":   {wrong, was[:1], 2, true, false},
		"differs, and an upsert was lost":  {wrong, append(was, upsert("c", 1)), 2, true, false},
		"differs, and a replica is behind": {wrong, was[:1], 1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			var equal bool
			again := func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
				var err error
				if equal, err = sink.(stream.Holding).Compare(c.digest); err != nil {
					return err
				}
				return snapshotThen("e", c.revision, c.next, stay)(ctx, resume, sink)
			}
			bubble(t, Config{BehindTimeout: time.Hour}, []stream.SourceFunc{snapshotThen("e", 2, was, again), stay}, func(t *testing.T, w *Watch, _ *script) {
				time.Sleep(10 * time.Second)
				synctest.Wait()
				stats, v := w.Stats(), w.Snapshot()
				if is := c.digest == same.String(); equal != is || stats.DigestMismatches != map[bool]uint64{true: 0, false: 1}[is] {
					t.Errorf("equal is %t, %d mismatches", equal, stats.DigestMismatches)
				}
				if renamed := v.Epoch() != "e"; renamed != c.renamed || v.SourceEpoch() != "e" {
					t.Errorf("the epoch is %s, of the source %s", v.Epoch(), v.SourceEpoch())
				}
				if behind := stats.Reconnects["behind"] > 0; behind != c.behind {
					t.Errorf("reconnects: %v", stats.Reconnects)
				}
				if !c.behind && (v.Count() != len(c.next) || v.Revision() != c.revision) {
					t.Errorf("%d resources at %d", v.Count(), v.Revision())
				}
			})
		})
	}
}
