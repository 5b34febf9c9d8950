package problem

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/view"
	"github.com/watchtide/watchtide/stream/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// noViews are views that nobody opens.
type noViews struct{}

// Open implements Views.
func (noViews) Open(*watch.Watch, *view.Definition, views.Request) (*watch.Watch, error) {
	return nil, errors.New("not here")
}

// newLookup returns the watches of a name each, none of which has a snapshot.
func newLookup(t testing.TB, names ...string) (Lookup, []*watch.Watch) {
	t.Helper()
	l := Lookup{Registry: watch.NewRegistry(), Views: noViews{}, Definitions: NewDefinitions()}
	t.Cleanup(l.Registry.Close)
	var watches []*watch.Watch
	for _, name := range names {
		w, err := l.Registry.Add(watch.Config{Name: name, OnDemand: true, LabelsAt: "meta." + name, Source: stream.SourceFunc(
			func(ctx context.Context, _ stream.Resume, _ stream.Sink) error { <-ctx.Done(); return ctx.Err() })})
		if err != nil {
			t.Fatal(err)
		}
		watches = append(watches, w)
	}
	return l, watches
}

// TestNarrowings checks which parameter narrows which watch.
func TestNarrowings(t *testing.T) {
	l, watches := newLookup(t, "a", "b.c")
	query, p := ParseQuery("prefix.a=x&labels.b.c=z&filter.b.c=true&fields.a=n&fields.a=m,o&fields.a=&filter.a=", Parameters{
		Once: []string{"prefix.", "labels.", "filter."}, Repeated: []string{"fields."},
	})
	if p != nil {
		t.Fatal(p)
	}
	all, p := Narrowings(query, []string{"a", "b.c"})
	if p != nil {
		t.Fatal(p)
	}
	for i, want := range []string{`view.Params{Prefix:"x", Labels:"", Filter:"", Fields:[]string{"m", "n", "o"}, LabelsAt:"", ValueSize:0}`,
		`view.Params{Prefix:"", Labels:"z", Filter:"true", Fields:[]string(nil), LabelsAt:"meta.b.c", ValueSize:0}`} {
		d, p := l.Definition(t.Context(), watches[i], all[i])
		if p != nil {
			t.Fatal(p)
		}
		if got := fmt.Sprintf("%#v", d.Params()); got != want {
			t.Errorf("%s: got %s, want %s", watches[i].Name(), got, want)
		}
	}
}

// TestNarrowingsWithoutEffect checks that they give no definition.
func TestNarrowingsWithoutEffect(t *testing.T) {
	l, watches := newLookup(t, "a")
	for _, query := range []url.Values{nil, {"filter": {""}, "fields": {"", ""}}, {"labels": {"  "}}} {
		if d, p := l.Definition(t.Context(), watches[0], NarrowingOf(query)); d != nil || p != nil {
			t.Errorf("%v: %v, %v", query, d, p)
		}
	}
	if part, err := l.Open(watches[0], nil, views.Request{}); part != watches[0] || err != nil {
		t.Errorf("%v, %v", part.Name(), err)
	}
}

// TestMistakeOfTheConfiguration checks that a client is not blamed for labels_at.
func TestMistakeOfTheConfiguration(t *testing.T) {
	l, _ := newLookup(t)
	w, err := l.Registry.Add(watch.Config{Name: "a", OnDemand: true, LabelsAt: "a,b", Source: stream.SourceFunc(nil)})
	if err != nil {
		t.Fatal(err)
	}
	_, p := l.Definition(t.Context(), w, NarrowingOf(url.Values{"labels": {"a"}}))
	if p == nil || p.Status != 500 || p.Parameter != "" || p.Watch != "a" {
		t.Errorf("%+v", p)
	}
}

// TestDefinitionsAreRemembered checks that equal parameters are compiled once, and that
// the table does not grow without limit.
func TestDefinitionsAreRemembered(t *testing.T) {
	d := NewDefinitions()
	parse := func(p view.Params) *view.Definition {
		t.Helper()
		made, err := d.parse(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first := parse(view.Params{Prefix: "a", Fields: []string{"b", "c"}})
	if parse(view.Params{Prefix: "a", Fields: []string{"b", "c"}}) != first {
		t.Error("made twice")
	}
	for _, other := range []view.Params{
		{Prefix: "a"}, {Prefix: "a", Fields: []string{"b"}}, {Prefix: "a", Fields: []string{"b,c"}}, {Labels: "a", Fields: []string{"b", "c"}},
		{Prefix: "a", Fields: []string{"b", "c"}, LabelsAt: "x"}, {Prefix: "a", Fields: []string{"b", "c"}, ValueSize: 1},
	} {
		if parse(other) == first {
			t.Errorf("%+v is taken for another", other)
		}
	}
	for i := range 3 * definitionsKept {
		parse(view.Params{Prefix: fmt.Sprint(i)})
		parse(view.Params{Prefix: "a", Fields: []string{"b", "c"}}) // in use
	}
	if parse(view.Params{Prefix: "a", Fields: []string{"b", "c"}}) != first {
		t.Error("one that is used is forgotten")
	}
	if len(d.known) != definitionsKept || d.newest.Len() != definitionsKept {
		t.Errorf("%d and %d are remembered", len(d.known), d.newest.Len())
	}
}

// TestDefinitionsTakeTurns checks that a client that has gone does not wait for a turn, and
// that what is known needs none.
func TestDefinitionsTakeTurns(t *testing.T) {
	d := NewDefinitions()
	known := view.Params{Prefix: "known"}
	if _, err := d.parse(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	for range cap(d.turns) {
		d.turns <- struct{}{}
	}
	if _, err := d.parse(t.Context(), known); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.parse(ctx, view.Params{Prefix: "new"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// FuzzNarrowings checks that any query either narrows each watch by a definition that its
// canonical form makes again, or is refused with a parameter that the client gave.
func FuzzNarrowings(f *testing.F) {
	for _, seed := range []string{
		"", "filter=value.n+%3E+1", "labels.a=x%3Dy&fields.b.c=n,m&fields.b.c=o", "prefix=%ff", "filter.a=%00&filter=", "fields.=x", "fields.a=a..b",
		"labels.b.c=a+in+(", "filter.a=" + strings.Repeat("(", 99), "prefix.a=" + strings.Repeat("x", view.MaxText+1), "filter.a=1&filter=2",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	l, watches := newLookup(f, "a", "b.c")
	known := Parameters{Once: []string{"prefix", "labels", "filter", "prefix.", "labels.", "filter."}, Repeated: []string{"fields", "fields."}}
	f.Fuzz(func(t *testing.T, text string, both bool) {
		query, p := ParseQuery(text, known)
		if p != nil {
			return
		}
		names := []string{"a", "b.c"}
		if !both {
			names = names[:1]
		}
		all, p := Narrowings(query, names)
		if p != nil {
			checkRefusal(t, query, p)
			return
		}
		for i := range names {
			d, p := l.Definition(t.Context(), watches[i], all[i])
			switch {
			case p != nil:
				checkRefusal(t, query, p)
			case d != nil:
				again, err := view.Parse(d.Params())
				if d.IsWhole() || err != nil || again.ID() != d.ID() {
					t.Errorf("%q: %+v, %v", text, d.Params(), err)
				}
			}
		}
	})
}

// checkRefusal checks the answer to parameters that a client gave.
func checkRefusal(t *testing.T, query url.Values, p *Problem) {
	t.Helper()
	if p.Status != 400 || p.Detail == "" {
		t.Errorf("%+v", p)
	}
	var given []string
	for name := range query {
		given = append(given, strings.ToValidUTF8(name, "\uFFFD"))
	}
	if !slices.Contains(given, p.Parameter) {
		t.Errorf("%q is refused, and %q are given", p.Parameter, given)
	}
	if at := p.Place; at != nil && !slices.ContainsFunc(query[p.Parameter], func(value string) bool {
		return at.Offset <= len(value) && at.Line >= 1 && at.Column >= 1
	}) {
		t.Errorf("%+v is not in %q", at, query[p.Parameter])
	}
}
