package views

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"github.com/watchtide/watchtide/stream/streamtest"
	"github.com/watchtide/watchtide/stream/view"
	"github.com/watchtide/watchtide/stream/watch"
)

// unseen is a history of which one replica saw all, and another less.
type unseen struct {
	begin  []streamtest.Step   // at both
	sees   []streamtest.Step   // then, at the one
	misses [][]streamtest.Step // then, at the other, one after the other
	config watch.Config        // of the other
}

// replicas are two replicas at the beginning of such a history.
type replicas struct {
	t          *testing.T
	definition *view.Definition
	position   *stream.Position // of a reader that has followed the view at the one
	other      *fixture
	next       chan struct{}
	steps      int // of what the other misses
}

func (u unseen) replicas(t *testing.T, d *view.Definition) *replicas {
	r := &replicas{t: t, definition: d, next: make(chan struct{}), steps: len(u.misses)}
	one := scriptedOf(t, watch.Config{}, slices.Concat(u.begin, u.sees, []streamtest.Step{streamtest.Hang()}))
	script := slices.Clone(u.begin)
	for _, steps := range u.misses {
		script = append(append(script, streamtest.Await(r.next)), steps...)
	}
	r.other = scriptedOf(t, u.config, append(script, streamtest.Hang()))
	s := subscribe(t, one.open(d, "c"), nil)
	s.read()
	r.position = s.at(t)
	return r
}

// follow follows the view at the other replica.
func (r *replicas) follow() *subscriber { return subscribe(r.t, r.other.open(r.definition, "x"), nil) }

// resumed lets the history end, and returns what the reader gets at the other replica.
func (r *replicas) resumed() []string {
	for range r.steps {
		r.next <- struct{}{}
		synctest.Wait()
	}
	return resumed(r.t, r.other, r.definition, r.position, false)
}

// resumed is for a replica that has the view already, or has not.
func (u unseen) resumed(t *testing.T, d *view.Definition, built bool) []string {
	r := u.replicas(t, d)
	if built {
		r.follow()
	}
	return r.resumed()
}

// kinds are filters for n == 1 that are fed in each of the ways.
var kinds = []string{`value.n == 1`, `value.n < 2 && value.n > 0`, `value.exists(k, k == "n" && value[k] == 1)`}

// TestDeleteOfUnseen: a replica that did not see a resource passes its delete on to readers
// that come from another one, which did.
func TestDeleteOfUnseen(t *testing.T) {
	nothing := []streamtest.Step{streamtest.Reset("e"), streamtest.Commit(3)}
	deleted := append(nothing[:2:2], streamtest.Upsert("k", 4, `{"n":2}`), streamtest.Commit(4), streamtest.Delete("k", 5), streamtest.Commit(5))
	for _, text := range kinds {
		for _, begin := range [][]streamtest.Step{nothing, deleted} {
			for _, built := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					u := unseen{
						begin:  begin,
						sees:   []streamtest.Step{streamtest.Upsert("k", 7, `{"n":1}`), streamtest.Commit(7)},
						misses: [][]streamtest.Step{{streamtest.Delete("k", 8), streamtest.Commit(8)}},
					}
					expectTexts(t, u.resumed(t, filter(t, text), built), "-k@8", "end@8")
				})
			}
		}
	}
}

// TestConflated: a replica that was sent only the newest values, and so never saw one that
// was in a view, has readers that come from another replica delete it. One that has seen
// all values has not.
func TestConflated(t *testing.T) {
	for _, text := range kinds {
		for name, c := range map[string]struct {
			skips streamtest.Step
			want  []string
		}{
			"left out":      {streamtest.Conflated(), []string{"bookmark@7", "-k@8", "end@8"}},
			"one after one": {streamtest.Upsert("other", 8, `{}`), []string{"end@8"}},
			"in one commit": {streamtest.Upsert("k", 7, `{"n":1}`), []string{"bookmark@7", "-k@8", "end@8"}},
		} {
			for _, built := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					t.Log(name, text, built)
					u := unseen{
						begin:  beginning("k", `{"n":0}`),
						sees:   []streamtest.Step{streamtest.Upsert("k", 7, `{"n":1}`), streamtest.Commit(7)},
						misses: [][]streamtest.Step{{c.skips, streamtest.Upsert("k", 8, `{"n":2}`), streamtest.Commit(8)}},
					}
					expectTexts(t, u.resumed(t, filter(t, text), built), c.want...)
				})
			}
		}
	}
}

// TestConflatedKeys: a view whose filter wants some keys deletes no other, whatever was left
// out.
func TestConflatedKeys(t *testing.T) {
	for text, want := range map[string][]string{
		`key == "k" && value.n == 1`:         {"bookmark@7", "-k@8", "end@9"},
		`key in ["k", "l"] && value.n == 1`:  {"bookmark@7", "-k@8", "end@9"},
		`key.startsWith("k") && value.n < 2`: {"bookmark@7", "-k@8", "end@9"},
		`value.n == 1`:                       {"bookmark@7", "-k@8", "-other@9", "end@9"},
		`key in ["l"] || value.n == 1`:       {"bookmark@7", "-k@8", "-other@9", "end@9"},
	} {
		for _, built := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				t.Log(text, built)
				u := unseen{
					begin: beginning("k", `{"n":0}`),
					sees:  []streamtest.Step{streamtest.Upsert("k", 7, `{"n":1}`), streamtest.Commit(7)},
					misses: [][]streamtest.Step{{
						streamtest.Conflated(), streamtest.Upsert("k", 8, `{"n":2}`), streamtest.Upsert("other", 9, `{"n":2}`), streamtest.Commit(9),
					}},
				}
				expectTexts(t, u.resumed(t, filter(t, text), built), want...)
			})
		}
	}
}

// TestReadersOfAViewThatIsMadeAgain: a view that is made again for a reader that comes from
// a later position keeps what those who follow it have not read yet.
func TestReadersOfAViewThatIsMadeAgain(t *testing.T) {
	for _, text := range kinds {
		synctest.Test(t, func(t *testing.T) {
			u := unseen{
				begin: beginning("k", `{"n":1}`),
				sees:  []streamtest.Step{streamtest.Upsert("k", 4, `{"n":2}`), streamtest.Commit(5)},
				misses: [][]streamtest.Step{{
					streamtest.Conflated(), streamtest.Upsert("k", 4, `{"n":2}`), streamtest.Upsert("other", 7, `{"n":2}`), streamtest.Commit(7),
				}},
			}
			r := u.replicas(t, filter(t, text))
			live := r.follow()
			live.expect(t, "reset initial", `k={"n":1}@3`, "end@3")
			expectTexts(t, r.resumed(), "bookmark@5", "-other@7", "end@7")
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
		u := unseen{
			begin: []streamtest.Step{
				streamtest.Reset("e"), streamtest.Upsert("k", 2, `{"n":1}`), streamtest.Upsert("l", 3, `{"n":1}`), streamtest.Commit(3),
			},
			sees: []streamtest.Step{streamtest.Delete("k", 4), streamtest.Commit(4)},
			misses: [][]streamtest.Step{
				{streamtest.Delete("k", 4), streamtest.Commit(4)}, {streamtest.Conflated(), streamtest.Delete("l", 5), streamtest.Commit(5)},
			},
			config: watch.Config{History: log.History{MaxDeletes: 1}},
		}
		r := u.replicas(t, filter(t, `value.n == 1`))
		live := r.follow()
		live.expect(t, "reset initial", `k={"n":1}@2`, `l={"n":1}@3`, "end@3")
		expectTexts(t, r.resumed(), "bookmark@4", "-l@5", "end@5")
		live.expect(t, "reset expired", "end@5")
	})
}

func beginning(key, value string) []streamtest.Step {
	return []streamtest.Step{streamtest.Reset("e"), streamtest.Upsert(key, 3, value), streamtest.Commit(3)}
}

func scriptedOf(t *testing.T, c watch.Config, script []streamtest.Step) *fixture {
	f := &fixture{t: t, registry: watch.NewRegistry(), views: New(Config{})}
	t.Cleanup(func() {
		f.views.Close()
		f.registry.Close()
	})
	var err error
	c.Name, c.Source = "w", streamtest.NewScripted(script)
	if f.base, err = f.registry.Add(c); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return f
}
