package views

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// tagged is what the tags of states, and the tokens of their pages, are compared with.
type tagged struct {
	t       *testing.T
	random  *rand.Rand
	states  map[string]string // by tag
	tags    map[string]string // by state; where deletes have revisions
	listing []begunListing
	second  int // pages that were read with a token
}

// begunListing is a listing of which the first page was read.
type begunListing struct {
	of   *part // nil: the whole watch
	next string
	want string // the second resource
}

// TestTagsNameStates checks, on two replicas that rebuild their views at random, that states
// with the same tag are the same, that equal states have the same tag whatever has changed
// elsewhere, and that a page is of the state of the page before it.
func TestTagsNameStates(t *testing.T) {
	t.Parallel()
	seeds := uint64(20)
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		for _, deletes := range []streamtest.DeleteRevisions{streamtest.OwnRevision, streamtest.NoRevision, streamtest.Vanishing} {
			t.Run(fmt.Sprint(seed, "/", deletes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, seed, deletes)
					w.upstream.Padding = ""
					g := &tagged{t: t, random: w.random, states: map[string]string{}, tags: map[string]string{}}
					for range 200 {
						w.act()
						synctest.Wait()
						w.read(false)
						g.look(w)
					}
					for _, c := range w.clients {
						if c.conn != nil {
							c.conn.Close()
						}
					}
					if len(g.states) < 20 || g.second == 0 && deletes == streamtest.OwnRevision {
						t.Errorf("%d states were seen, and %d second pages", len(g.states), g.second)
					}
				})
			})
		}
	}
}

// look looks at each view and at the watch, on each replica.
func (g *tagged) look(w *world) {
	for _, r := range w.replicas {
		g.note(r.base, nil)
		for _, p := range w.parts {
			if v, err := r.views.Open(r.base, p.definition, Request{Client: "tags"}); err == nil {
				synctest.Wait()
				g.note(v, p)
			}
		}
	}
}

// note compares the state of a watch with those that were seen before.
func (g *tagged) note(w *watch.Watch, of *part) {
	s := w.Snapshot()
	if !s.Primed() {
		return
	}
	var all []string
	for r := range s.Resources() {
		all = append(all, textOf(r))
	}
	slices.Sort(all)
	shown := s.Epoch() + "\n" + strings.Join(all, "\n")
	if before, known := g.states[s.Tag()]; known && before != shown {
		g.t.Errorf("the tag %s is that of two states:\n%s\n\n%s", s.Tag(), before, shown)
	}
	g.states[s.Tag()] = shown
	numbered := !strings.HasPrefix(s.Epoch(), stream.UnnumberedEpoch)
	if numbered {
		if before, known := g.tags[shown]; known && before != s.Tag() {
			g.t.Errorf("a state has the tags %s and %s:\n%s", before, s.Tag(), shown)
		}
		g.tags[shown] = s.Tag()
	}
	if numbered {
		g.list(w, of)
	}
}

// list begins a listing, and continues one that was begun at any time and on any replica.
func (g *tagged) list(w *watch.Watch, of *part) {
	page, err := w.Page("", 1)
	if err != nil || page.Tag != w.Snapshot().Tag() {
		g.t.Fatalf("the first page has the tag %s, %v; want %s", page.Tag, err, w.Snapshot().Tag())
	}
	if all, err := w.Page("", 2); err == nil && page.Next != "" && g.random.IntN(4) == 0 {
		g.listing = append(g.listing, begunListing{of, page.Next, textOf(all.Resources[1])})
	}
	for range 4 {
		if len(g.listing) == 0 {
			return
		}
		l := g.listing[g.random.IntN(len(g.listing))]
		if next, err := w.Page(l.next, 1); err == nil && l.of == of {
			g.second++
			if len(next.Resources) != 1 || textOf(next.Resources[0]) != l.want || next.Tag != "" {
				g.t.Errorf("the next page is %v, tag %q, want %s", next.Resources, next.Tag, l.want)
			}
		}
	}
}

func textOf(r stream.Resource) string { return fmt.Sprintf("%s@%d %s", r.Key, r.Revision, r.Value) }
