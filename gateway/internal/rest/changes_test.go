package rest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// TestAnswerEndsWhereTheStateIsWhole: not among the deletes of a catch-up, whose position is the one
// from before, not after them, and not inside a transaction.
func TestAnswerEndsWhereTheStateIsWhole(t *testing.T) {
	value := []byte(`"` + strings.Repeat("x", 64<<10) + `"`)
	for name, among := range map[string]stream.EventType{"a catch-up": stream.Delete, "a transaction": stream.Upsert} {
		w, old, err := log.NewWriter(log.Config{Watch: "w"}), []stream.Resource(nil), error(nil)
		for i := range 1500 {
			old = append(old, stream.Resource{Key: fmt.Sprintf("d%04d", i), Revision: 5, Value: []byte("1")})
		}
		_, err = w.Replace("e", old, 5)
		sub, b := w.Subscribe(log.SubscribeOptions{}), &log.Batch{}
		for sub.Next(b) {
		}
		var large []log.Change
		for i := range 40 {
			large = append(large, log.Change{Resource: stream.Resource{Key: fmt.Sprint("u", i), Revision: 9, Value: value}})
		}
		_, committed := w.Commit(large, 9)
		err = errors.Join(err, committed)
		for i := uint64(0); among == stream.Delete && i < 1500; i++ {
			_, committed = w.Commit([]log.Change{{Resource: stream.Resource{Key: old[i].Key, Revision: 10 + i}, Deleted: true}}, 10+i)
			err = errors.Join(err, committed)
		}
		if err != nil {
			t.Fatal(err)
		}
		upserts, flushes := 0, 0
		for sub.Next(b) {
			upserts += b.Count(stream.Upsert)
			if flushes++; flushes == 1 && b.Count(among) == 0 {
				t.Errorf("%s: the first flush has no %s", name, among)
			}
			if end := upserts == 40 && sub.CaughtUp(); whole(sub) != end {
				t.Errorf("%s: after %d flushes whole is %t", name, flushes, whole(sub))
			}
		}
		if flushes < 3 || upserts != 40 {
			t.Errorf("%s: %d flushes, %d upserts", name, flushes, upserts)
		}
	}
}
