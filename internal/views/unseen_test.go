package views

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
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
	return resumed(r.t, r.other, r.definition, r.position, true)
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
// was in a view, has the reader for which the view is made delete it, if it comes from another
// replica. Later ones get a reset. A replica that has seen all values sends neither.
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
					want := c.want
					if built && name != "one after one" {
						want = []string{"reset expired", "end@8"}
					}
					expectTexts(t, u.resumed(t, filter(t, text), built), want...)
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
		synctest.Test(t, func(t *testing.T) {
			t.Log(text)
			u := unseen{
				begin: beginning("k", `{"n":0}`),
				sees:  []streamtest.Step{streamtest.Upsert("k", 7, `{"n":1}`), streamtest.Commit(7)},
				misses: [][]streamtest.Step{{
					streamtest.Conflated(), streamtest.Upsert("k", 8, `{"n":2}`), streamtest.Upsert("other", 9, `{"n":2}`), streamtest.Commit(9),
				}},
			}
			expectTexts(t, u.resumed(t, filter(t, text), false), want...)
		})
	}
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
