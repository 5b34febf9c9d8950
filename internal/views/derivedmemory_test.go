package views

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestDeclaredCountsAndWindowsPay: what a declared count or window is made of counts as the memory of its watch, and of all
// watches together, and not as that of the views that clients ask for.
func TestDeclaredCountsAndWindowsPay(t *testing.T) {
	const rows, least = 5000, 5000 * 40 // bytes
	sources := map[string]func(v *Views, open func() (*watch.Watch, error), t *testing.T) stream.Source{
		"count": func(v *Views, open func() (*watch.Watch, error), t *testing.T) stream.Source {
			return v.CountSource("w", open, grouping(t, "s", "n"))
		},
		"window": func(v *Views, open func() (*watch.Watch, error), t *testing.T) stream.Source {
			return v.WindowSource("w", open, definition(t, view.Params{Order: "n", Limit: "1"}))
		},
	}
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, Config{})
				var texts []string
				for i := range rows {
					texts = append(texts, fmt.Sprintf(`k%d={"s":1,"n":%d}`, i, i))
				}
				f.commit(texts...)
				all, shared := NewDeclared(), memory.NewCeiling(0)
				defer all.Close()
				all.LimitGroups(5)
				add := func(as string, ceiling int64) *watch.Watch {
					w, err := f.registry.Add(watch.Config{
						Name: as, Source: source(all, func() (*watch.Watch, error) { return f.base, nil }, t), MaxBytes: ceiling, Memory: shared,
						Backoff: watch.Backoff{Min: time.Second, Max: time.Second},
					})
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					return w
				}
				wide := add("wide", 0)
				if wide.Status().State != stream.InSync || wide.Memory().Held() < least || shared.Held() < least {
					t.Errorf("%+v, %d bytes are charged to the watch, and %d to all, want at least %d", wide.Status(), wide.Memory().Held(), shared.Held(), least)
				}
				if all.exceeds() || all.limits().MaxGroups != 5 {
					t.Errorf("%d bytes are too many, or there are %d groups", all.holds(), all.limits().MaxGroups)
				}
				narrow := add("narrow", 200<<10)
				time.Sleep(time.Minute)
				if why := narrow.Full(); why == nil || !strings.Contains(why.Error(), "of its memory ceiling") {
					t.Errorf("one with too little memory is %+v, and full because of %v", narrow.Status(), why)
				}
				f.registry.Remove("wide")
				f.registry.Remove("narrow")
				synctest.Wait()
				if shared.Held() != 0 {
					t.Errorf("%d bytes are charged for watches that are no more", shared.Held())
				}
			})
		})
	}
}

// TestTallyCountsTexts: groups with long texts take the memory of these.
func TestTallyCountsTexts(t *testing.T) {
	long := strings.Repeat(`\u0000`, view.MaxGroupText)
	tally := newTally(grouping(t, "a,b,c,d", ""), 1000)
	var all []stream.Resource
	for i := range 100 {
		all = append(all, stream.Resource{Value: fmt.Appendf(nil, `{"a":%d,"b":"%s","c":"%s","d":"%s"}`, i, long, long, long)})
	}
	for _, r := range all {
		tally.add(r, 1)
	}
	texts := int64(0)
	for _, g := range tally.groups {
		texts += int64(len(g.key))
		for _, part := range g.parts {
			texts += int64(len(part))
		}
	}
	if got := tally.bytes(); texts < 100*6*3*view.MaxGroupText || got < texts+100*groupBytes {
		t.Errorf("%d bytes are counted, of %d texts", got, texts)
	}
	for _, r := range all {
		tally.add(r, -1)
	}
	if tally.changes(); tally.bytes() != 0 {
		t.Errorf("%d bytes are counted for no groups", tally.bytes())
	}
}
