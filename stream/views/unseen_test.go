package views

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/stream/streamtest"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestDeleteOfUnseen: a replica that did not see a resource passes its delete on to readers
// that come from another one, which did.
func TestDeleteOfUnseen(t *testing.T) {
	for _, text := range []string{`value.n == 1`, `value.n < 2`, `value.exists(k, k == "n" && value[k] == 1)`} {
		for _, before := range []string{"nothing", "deleted"} {
			for _, built := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					begin := []streamtest.Step{streamtest.Reset("e"), streamtest.Commit(3)}
					if before == "deleted" {
						begin = append(begin, streamtest.Upsert("k", 4, `{"n":2}`), streamtest.Commit(4), streamtest.Delete("k", 5), streamtest.Commit(5))
					}
					sees := append(slices.Clone(begin), streamtest.Upsert("k", 7, `{"n":1}`), streamtest.Commit(7), streamtest.Hang())
					more := make(chan struct{})
					misses := append(slices.Clone(begin), streamtest.Await(more), streamtest.Delete("k", 8), streamtest.Commit(8), streamtest.Hang())
					f, g := scripted(t, sees), scripted(t, misses)
					d := filter(t, text)
					s := subscribe(t, f.open(d, "c"), nil)
					s.read()
					if built {
						subscribe(t, g.open(d, "x"), nil)
					}
					close(more)
					synctest.Wait()
					expectTexts(t, resumed(t, g, d, s.at(t), false), "-k@8", "end@8")
				})
			}
		}
	}
}

func scripted(t *testing.T, script []streamtest.Step) *fixture {
	return scriptedOf(t, watch.Config{}, script)
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
