package views

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/streamtest"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestConflated: a replica that was sent only the newest values, and so never saw one that
// was in a view, has readers that come from another replica delete it. One that has seen
// all values has not.
func TestConflated(t *testing.T) {
	for _, text := range []string{`value.n == 1`, `value.n < 2 && value.n > 0`, `value.exists(k, k == "n" && value[k] == 1)`} {
		for name, c := range map[string]struct {
			skips streamtest.Step
			want  []string
		}{
			"left out":      {streamtest.Conflated(), []string{"-k@8", "end@8"}},
			"one after one": {streamtest.Upsert("other", 8, `{}`), []string{"end@8"}},
			"in one commit": {streamtest.Upsert("k", 7, `{"n":1}`), []string{"-k@8", "end@8"}},
		} {
			for _, built := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					begin := []streamtest.Step{streamtest.Reset("e"), streamtest.Upsert("k", 3, `{"n":0}`), streamtest.Commit(3)}
					sees := append(begin[:3:3], streamtest.Upsert("k", 7, `{"n":1}`), streamtest.Commit(7), streamtest.Hang())
					more := make(chan struct{})
					misses := append(begin[:3:3], streamtest.Await(more), c.skips, streamtest.Upsert("k", 8, `{"n":2}`), streamtest.Commit(8), streamtest.Hang())
					f, g := scripted(t, sees), scripted(t, misses)
					d := filter(t, text)
					s := subscribe(t, f.open(d, "c"), nil)
					s.read()
					if built {
						subscribe(t, g.open(d, "x"), nil)
					}
					close(more)
					synctest.Wait()
					t.Log(name, text, built)
					expectTexts(t, resumed(t, g, d, s.at(t), false), c.want...)
				})
			}
		}
	}
}

// TestReadersOfAViewThatIsMadeAgain: a view that is made again for a reader that comes from
// a later position keeps what those who follow it have not read yet.
func TestReadersOfAViewThatIsMadeAgain(t *testing.T) {
	for _, text := range []string{`value.n == 1`, `value.n < 2 && value.n > 0`, `value.exists(k, k == "n" && value[k] == 1)`} {
		synctest.Test(t, func(t *testing.T) {
			begin := []streamtest.Step{streamtest.Reset("e"), streamtest.Upsert("k", 3, `{"n":1}`), streamtest.Commit(3)}
			sees := append(begin[:3:3], streamtest.Upsert("k", 4, `{"n":2}`), streamtest.Commit(5), streamtest.Hang())
			more := make(chan struct{})
			misses := append(begin[:3:3], streamtest.Await(more), streamtest.Conflated(),
				streamtest.Upsert("k", 4, `{"n":2}`), streamtest.Upsert("other", 7, `{"n":2}`), streamtest.Commit(7), streamtest.Hang())
			f, g := scripted(t, sees), scripted(t, misses)
			d := filter(t, text)
			s := subscribe(t, f.open(d, "c"), nil)
			s.read()
			live := subscribe(t, g.open(d, "live"), nil)
			live.expect(t, "reset initial", `k={"n":1}@3`, "end@3")
			close(more)
			synctest.Wait()
			expectTexts(t, resumed(t, g, d, s.at(t), false), "-other@7", "end@7")
			if got := live.read(); !slices.Contains(got, "-k@4") {
				t.Errorf("read %q, want the delete of k at 4", got)
			}
		})
	}
}

// TestForgottenDeletesOfAViewThatIsMadeAgain: its readers begin with a snapshot if they have
// not read deletes that the watch has forgotten.
func TestForgottenDeletesOfAViewThatIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := []streamtest.Step{
			streamtest.Reset("e"), streamtest.Upsert("k", 2, `{"n":1}`), streamtest.Upsert("l", 3, `{"n":1}`), streamtest.Commit(3),
		}
		sees := append(begin[:4:4], streamtest.Delete("k", 4), streamtest.Commit(4), streamtest.Hang())
		first, second := make(chan struct{}), make(chan struct{})
		misses := append(begin[:4:4], streamtest.Await(first), streamtest.Delete("k", 4), streamtest.Commit(4),
			streamtest.Await(second), streamtest.Conflated(), streamtest.Delete("l", 5), streamtest.Commit(5), streamtest.Hang())
		f, g := scripted(t, sees), scriptedOf(t, watch.Config{History: log.History{MaxDeletes: 1}}, misses)
		d := filter(t, `value.n == 1`)
		s := subscribe(t, f.open(d, "c"), nil)
		s.read()
		live := subscribe(t, g.open(d, "live"), nil)
		live.expect(t, "reset initial", `k={"n":1}@2`, `l={"n":1}@3`, "end@3")
		close(first)
		synctest.Wait()
		close(second)
		synctest.Wait()
		expectTexts(t, resumed(t, g, d, s.at(t), false), "-l@5", "end@5")
		live.expect(t, "reset expired", "end@5")
	})
}
