package history

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// upstream is a writer of a log, and everything that it ever wrote, oldest first.
type upstream struct {
	w        *log.Writer
	revision uint64
	live     map[string]stream.Resource
	all      []Change
}

func newUpstream(t *rapid.T, h log.Retention, resources int) *upstream {
	u := &upstream{w: log.NewWriter(log.Config{Watch: "w", History: h}), revision: 10, live: map[string]stream.Resource{}}
	var snapshot []stream.Resource
	for i := range resources {
		r := stream.Resource{Key: fmt.Sprintf("k%d", i), Revision: u.revision, Value: []byte(`{"a":0,"b":"x"}`)}
		u.live[r.Key] = r
		snapshot = append(snapshot, r)
		u.all = append(u.all, Change{Resource: r})
	}
	if _, err := u.w.Replace("e", snapshot, u.revision); err != nil {
		t.Fatal(err)
	}
	return u
}

// commit makes some changes: one revision for all of them, or one each.
func (u *upstream) commit(t *rapid.T) {
	together := rapid.Bool().Draw(t, "one revision")
	var changes []log.Change
	touched := map[string]bool{}
	u.revision++
	for range rapid.IntRange(1, 5).Draw(t, "changes") {
		key := fmt.Sprintf("k%d", rapid.IntRange(0, 7).Draw(t, "key"))
		if touched[key] {
			continue
		}
		touched[key] = true
		if !together && len(changes) > 0 {
			u.revision++
		}
		changes = append(changes, u.change(t, key))
	}
	for _, c := range changes {
		u.all = append(u.all, Change{Resource: c.Resource, Deleted: c.Deleted})
	}
	if _, err := u.w.Commit(changes, u.revision); err != nil {
		t.Fatal(err)
	}
}

func (u *upstream) change(t *rapid.T, key string) log.Change {
	if _, is := u.live[key]; is && rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
		delete(u.live, key)
		return log.Change{Resource: stream.Resource{Key: key, Revision: u.revision}, Deleted: true}
	}
	padding := strings.Repeat("y", rapid.SampledFrom([]int{0, 10, 10, 100, 30_000}).Draw(t, "padding"))
	value := fmt.Sprintf(`{"a":%d,"b":%q}`, rapid.IntRange(0, 3).Draw(t, "a"), padding)
	r := stream.Resource{Key: key, Revision: u.revision, Value: []byte(value)}
	u.live[key] = r
	return log.Change{Resource: r}
}

// past is what a reader of everything would be shown, newest first.
func (u *upstream) past(d *view.Definition, key *string) (past []Change) {
	had := map[string]bool{}
	for _, c := range u.all {
		has := !c.Deleted && (d == nil || selects(d, c.Resource))
		shown := Change{Resource: stream.Resource{Key: c.Key, Revision: c.Revision}, Deleted: !has}
		if has {
			shown.Resource = c.Resource
			if d != nil {
				shown.Resource, _ = d.Project(c.Resource)
			}
		}
		if (has || had[c.Key] || d == nil) && (key == nil || *key == c.Key) {
			past = append([]Change{shown}, past...)
		}
		had[c.Key] = has
	}
	return past
}

// initially is how many resources the first snapshot has.
const initially = 4

func selects(d *view.Definition, r stream.Resource) bool {
	matches, err := d.Matches(r)
	return err == nil && matches
}

// readAll reads all pages.
func readAll(t *rapid.T, s log.Snapshot, d *view.Definition, q Query) (all []Change, since uint64) {
	for pages := 0; ; pages++ {
		if pages > 10_000 {
			t.Fatal("the pages do not end")
		}
		q.Limit = rapid.IntRange(1, 6).Draw(t, "limit")
		q.Entries = rapid.SampledFrom([]int{1, 1000}).Draw(t, "entries")
		p := Read(s, d, q, func() bool { return true })
		all, since = append(all, p.Changes...), max(since, p.Since)
		if p.Next == nil {
			return all, since
		}
		c, err := ParseCursor(Cursor{"e", p.Next.Revision, p.Next.Passed, p.Next.Shown}.String())
		if err != nil {
			t.Fatal(err)
		}
		q.Before = &c
	}
}

// definitions by what they are about; nil: the whole watch.
func definitions(t *testing.T) map[string]*view.Definition {
	all := map[string]*view.Definition{"whole": nil}
	for name, p := range map[string]view.Params{
		"filter": {Filter: "value.a > 1"},
		"prefix": {Prefix: "k1"},
		"fields": {Filter: `value.a != 2`, Fields: []string{"a"}},
		"rules":  {Grants: []view.Grant{{Filter: "value.a >= 1 && key != 'k3'", Fields: []string{"a"}}}},
	} {
		d, err := view.Parse(p)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = d
	}
	return all
}

// TestHistory: whatever is read is a part of what happened, in its order and without a gap after
// the revision since which it is said to be complete. This holds for views, for single resources,
// while the log drops what was superseded, and for any size of the pages.
func TestHistory(t *testing.T) {
	for name, d := range definitions(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := log.Retention{MaxDeletes: rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "deletes")}
				u := newUpstream(t, h, initially)
				for range rapid.IntRange(0, 40).Draw(t, "commits") {
					u.commit(t)
				}
				var key *string
				if rapid.Bool().Draw(t, "of one key") {
					k := fmt.Sprintf("k%d", rapid.IntRange(0, 8).Draw(t, "key"))
					key = &k
				}
				got, since := readAll(t, u.w.Snapshot(), d, Query{Key: key, Bytes: 1 << 20})
				compare(t, got, since, u.past(d, key))
			})
		})
	}
}

// compare checks what was read against all that happened.
func compare(t *rapid.T, got []Change, since uint64, happened []Change) {
	type id struct {
		key      string
		revision uint64
	}
	shown := map[id]bool{}
	for i := range got {
		got[i].At, got[i].Projected = time.Time{}, false
		shown[id{got[i].Key, got[i].Revision}] = true
	}
	want := happened[:0:0]
	for _, c := range happened {
		switch {
		case shown[id{c.Key, c.Revision}]:
			want = append(want, c)
		case c.Revision > since:
			t.Fatalf("complete since %d, but %q at %d is missing", since, c.Key, c.Revision)
		}
	}
	if len(want) != len(got) {
		t.Fatalf("%d changes are shown, of which %d happened", len(got), len(want))
	}
	for i := range got {
		if c := got[i]; !reflect.DeepEqual(c, want[i]) {
			t.Fatalf("change %d of %d: %q at %d, deleted %t; want %q at %d, deleted %t", i, len(got), c.Key, c.Revision, c.Deleted, want[i].Key, want[i].Revision, want[i].Deleted)
		}
	}
}

// TestAfter: what is newer than a position is exactly that.
func TestAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := newUpstream(t, log.Retention{}, initially)
		for range rapid.IntRange(1, 10).Draw(t, "commits") {
			u.commit(t)
		}
		before, at := len(u.all), u.w.Snapshot().Position()
		for range rapid.IntRange(0, 10).Draw(t, "more commits") {
			u.commit(t)
		}
		got, since := readAll(t, u.w.Snapshot(), nil, Query{After: &at, Bytes: 1 << 20})
		compare(t, got, since, u.past(nil, nil)[:len(u.all)-before])
	})
}

// TestPagesEnd: a page ends when it has to, and the next one goes on without a loss inside a
// large transaction of which little is shown.
func TestPagesEnd(t *testing.T) {
	w := log.NewWriter(log.Config{Watch: "w"})
	if _, err := w.Replace("e", nil, 1); err != nil {
		t.Fatal(err)
	}
	var changes []log.Change
	for i := range 10_000 {
		changes = append(changes, log.Change{Resource: stream.Resource{Key: fmt.Sprintf("k%05d", i), Revision: 2, Value: []byte("1")}})
	}
	if _, err := w.Commit(changes, 2); err != nil {
		t.Fatal(err)
	}
	d, err := view.Parse(view.Params{Filter: "key.endsWith('77')"})
	if err != nil {
		t.Fatal(err)
	}
	seen, pages := map[string]bool{}, 0
	q := Query{Limit: 7, Bytes: 1 << 20, Entries: 1000}
	for ; ; pages++ {
		asked := 0
		p := Read(w.Snapshot(), d, q, func() bool { asked++; return asked < 2 })
		for _, c := range p.Changes {
			if seen[c.Key] {
				t.Fatalf("%s comes twice", c.Key)
			}
			seen[c.Key] = true
		}
		if p.Next == nil {
			break
		}
		q.Before = p.Next
	}
	if len(seen) != 100 || pages < 15 || pages > 60 {
		t.Errorf("%d resources in %d pages", len(seen), pages)
	}
}

// FuzzCursor: any text is refused or is a cursor, which is read again as the same.
func FuzzCursor(f *testing.F) {
	f.Add(Cursor{Epoch: "e", Revision: 7, Passed: 256, Shown: 3}.String())
	f.Add("")
	f.Add("eyJlIjoiZSJ9")
	w := log.NewWriter(log.Config{Watch: "w"})
	if _, err := w.Replace("e", []stream.Resource{{Key: "a", Revision: 1, Value: []byte("1")}}, 1); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCursor(text)
		if err != nil {
			return
		}
		if again, err := ParseCursor(c.String()); err != nil || again != c {
			t.Fatalf("%+v: %+v, %v", c, again, err)
		}
		if p := Read(w.Snapshot(), nil, Query{Before: &c, Limit: 10, Bytes: 10, Entries: 10}, func() bool { return true }); len(p.Changes) > 1 {
			t.Fatalf("%+v: %d changes", c, len(p.Changes))
		}
	})
}

// TestCostlyFilter: a page ends once its filter has cost more than is allowed, and says so. A
// filter that costs less for the same values has its pages.
func TestCostlyFilter(t *testing.T) {
	w := log.NewWriter(log.Config{Watch: "w"})
	if _, err := w.Replace("e", nil, 1); err != nil {
		t.Fatal(err)
	}
	const changes = 200
	for i := range changes {
		r := stream.Resource{Key: "k", Revision: uint64(i + 2), Value: fmt.Appendf(nil, `{"s":%q,"n":%d}`, strings.Repeat("a", 40_000), i)}
		if _, err := w.Commit([]log.Change{{Resource: r}}, r.Revision); err != nil {
			t.Fatal(err)
		}
	}
	for filter, costly := range map[string]bool{`value.s.matches("(aa|a{60})+b")`: true, `value.s.contains("b")`: false, `value.n < 0`: false} {
		d, err := view.Parse(view.Params{Filter: filter})
		if err != nil {
			t.Fatal(err)
		}
		p := Read(w.Snapshot(), d, Query{Limit: changes, Bytes: 1 << 40, Entries: changes}, func() bool { return true })
		if p.TooCostly != costly || p.TooCostly && (len(p.Changes) > 0 || p.Next != nil) {
			t.Errorf("%s: costs too much: %t, with %d changes and %v", filter, p.TooCostly, len(p.Changes), p.Next)
		}
	}
}
