package authz

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// noViews are views that nobody opens.
type noViews struct{}

// Open implements Views.
func (noViews) Open(*watch.Watch, *view.Definition, views.Request) (*watch.Watch, error) {
	return nil, errors.New("not here")
}

// Count implements Views.
func (noViews) Count(*watch.Watch, *view.Grouping, views.Request) (*watch.Watch, error) {
	return nil, errors.New("not here")
}

// Shared implements Views.
func (noViews) Shared(_ *watch.Watch, d *view.Definition) *view.Definition { return d }

// SharedGrouping implements Views.
func (noViews) SharedGrouping(_ *watch.Watch, g *view.Grouping) *view.Grouping { return g }

// newLookup returns the watches of a name each, none of which has a snapshot.
func newLookup(t testing.TB, names ...string) (*Lookup, []Handle) {
	t.Helper()
	registry := watch.NewRegistry()
	l := New(Config{Watches: registry, Views: noViews{}})
	t.Cleanup(registry.Close)
	var watches []Handle
	for _, name := range names {
		w, err := registry.Add(watch.Config{Name: name, OnDemand: true, LabelsAt: "meta." + name, Source: stream.SourceFunc(
			func(ctx context.Context, _ stream.Resume, _ stream.Sink) error { <-ctx.Done(); return ctx.Err() })})
		if err != nil {
			t.Fatal(err)
		}
		watches = append(watches, Handle{lookup: l, watch: w})
	}
	return l, watches
}

// TestNarrowings checks which parameter narrows which watch.
func TestNarrowings(t *testing.T) {
	_, watches := newLookup(t, "a", "b.c")
	query, p := problem.ParseQuery("prefix.a=x&labels.b.c=z&filter.b.c=true&fields.a=n&fields.a=m,o&fields.a=&filter.a=", problem.Parameters{
		Once: []string{"prefix.", "labels.", "filter."}, Repeated: []string{"fields."},
	})
	if p != nil {
		t.Fatal(p)
	}
	all, p := Narrowings(query, []string{"a", "b.c"})
	if p != nil {
		t.Fatal(p)
	}
	for i, want := range []view.Params{{Prefix: "x", Fields: []string{"m", "n", "o"}}, {Labels: "z", Filter: "true", LabelsAt: "meta.b.c"}} {
		part, p := watches[i].Narrow(t.Context(), all[i], "me")
		if p != nil {
			t.Fatal(p)
		}
		if got := part.Definition().Params(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, want %#v", watches[i].Name(), got, want)
		}
	}
}

// TestCountsInStreams checks which watches of a stream are counted, and what counts cannot have.
func TestCountsInStreams(t *testing.T) {
	_, watches := newLookup(t, "a", "b.c")
	all, p := Narrowings(url.Values{"by.b.c": {"x", "y.z"}, "sum.b.c": {"n"}, "filter.b.c": {"true"}, "filter.a": {"false"}, "by.a": {""}}, []string{"a", "b.c"})
	if p != nil {
		t.Fatal(p)
	}
	for i, want := range []bool{false, true} {
		part, p := watches[i].Narrow(t.Context(), all[i], "me")
		if p != nil || part.Counts() != want || part.Definition() == nil {
			t.Errorf("%s: %+v, %v: counts %t, want %t", watches[i].Name(), part, p, part.Counts(), want)
		}
	}
	for query, want := range map[string]string{
		"by=x":                             "by",
		"by.d=x":                           "by.d",
		"by.a=x&fields.a=y":                "fields.a",
		"by.b.c=x&limit.b.c=":              "",
		"by.b.c=x&limit.b.c=5&order.b.c=x": "order.b.c",
		"sum.a=x":                          "sum.a",
	} {
		values, _ := url.ParseQuery(query)
		_, p := Narrowings(values, []string{"a", "b.c"})
		if want == "" && p != nil || want != "" && (p == nil || p.Status != 400 || p.Parameter != want) {
			t.Errorf("%s: %+v, want a 400 of %q", query, p, want)
		}
	}
}

// TestNarrowingsWithoutEffect checks that they give no definition.
func TestNarrowingsWithoutEffect(t *testing.T) {
	_, watches := newLookup(t, "a")
	for _, query := range []url.Values{nil, {"filter": {""}, "fields": {"", ""}}, {"labels": {"  "}}} {
		if part, p := watches[0].Narrow(t.Context(), NarrowingOf(query), "me"); part.Definition() != nil || p != nil {
			t.Errorf("%v: %v, %v", query, part.Definition(), p)
		}
	}
	if w, err := (Part{Handle: watches[0]}).Open(views.Request{}); w != watches[0].watch || err != nil {
		t.Errorf("%v, %v", w.Name(), err)
	}
}

// TestMistakeOfTheConfiguration checks that a client is not blamed for labels_at.
func TestMistakeOfTheConfiguration(t *testing.T) {
	l, _ := newLookup(t)
	w, err := l.config.Watches.Add(watch.Config{Name: "a", OnDemand: true, LabelsAt: "a,b", Source: stream.SourceFunc(nil)})
	if err != nil {
		t.Fatal(err)
	}
	_, p := Handle{lookup: l, watch: w}.Narrow(t.Context(), NarrowingOf(url.Values{"labels": {"a"}}), "me")
	if p == nil || p.Status != 500 || p.Parameter != "" || p.Watch != "a" {
		t.Errorf("%+v", p)
	}
}

// TestDefinitionsAreRemembered checks that equal parameters are compiled once, and that
// the table does not grow without limit.
func TestDefinitionsAreRemembered(t *testing.T) {
	d := newDefinitions()
	parse := func(p view.Params) *view.Definition {
		t.Helper()
		made, err := d.parse(t.Context(), nil, p, "me")
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	often := view.Params{Filter: "true", Fields: []string{"b", "c"}}
	first := parse(often)
	if parse(view.Params{Filter: "true", Fields: []string{"b", "c"}}) != first {
		t.Error("made twice")
	}
	for _, other := range []view.Params{
		{Filter: "true"}, {Filter: "true", Fields: []string{"b"}}, {Filter: "true", Fields: []string{"b,c"}}, {Labels: "true", Fields: []string{"b", "c"}},
		{Filter: "true", Prefix: "b", Fields: []string{"c"}}, {Filter: "true", Fields: []string{"b", "c"}, LabelsAt: "x"}, {Filter: "true", Fields: []string{"b", "c"}, ValueSize: 1},
	} {
		if parse(other) == first {
			t.Errorf("%+v is taken for another", other)
		}
	}
	for i := range 3 * definitionsKept {
		parse(view.Params{Filter: "true", Prefix: fmt.Sprint(i)})
		if parse(often) != first {
			t.Fatal("one that is used is forgotten")
		}
	}
	if len(d.known) != definitionsKept || d.newest.Len() != definitionsKept {
		t.Errorf("%d and %d are remembered", len(d.known), d.newest.Len())
	}
}

// TestDefinitionsTakeTurns checks that a client whose definition is being made waits with
// the next, and delays nobody else; that nobody waits forever, or once it has gone; and that
// a definition that is known needs no turn.
func TestDefinitionsTakeTurns(t *testing.T) {
	l, watches := newLookup(t, "a")
	ask := func(ctx context.Context, prefix, client string) *problem.Problem {
		_, p := watches[0].Narrow(ctx, NarrowingOf(url.Values{"prefix": {prefix}, "filter": {"true"}}), client)
		return p
	}
	if p := ask(t.Context(), "known", "me"); p != nil {
		t.Fatal(p)
	}
	busy := l.definitions.enter("me")
	busy.turn <- struct{}{}
	if p := ask(t.Context(), "known", "me"); p != nil {
		t.Errorf("a known definition: %v", p)
	}
	if p := ask(t.Context(), "new", "you"); p != nil {
		t.Errorf("another client: %v", p)
	}
	if _, p := watches[0].Narrow(t.Context(), NarrowingOf(url.Values{"prefix": {"new"}}), "me"); p != nil {
		t.Errorf("a definition without a filter: %v", p)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if p := ask(gone, "newer", "me"); p == nil || p.Status == http.StatusServiceUnavailable {
		t.Errorf("a client that has gone: %+v", p)
	}
	synctest.Test(t, func(t *testing.T) {
		l.definitions = newDefinitions()
		l.definitions.enter("me").turn <- struct{}{}
		if p := ask(t.Context(), "newer", "me"); p == nil || p.Status != http.StatusServiceUnavailable || p.RetryAfter == 0 {
			t.Errorf("after a long wait: %+v", p)
		}
		for range cap(l.definitions.processors) {
			l.definitions.processors <- struct{}{}
		}
		if p := ask(t.Context(), "newer", "you"); p == nil || p.Status != http.StatusServiceUnavailable {
			t.Errorf("after a long wait for a processor: %+v", p)
		}
		if n := len(l.definitions.clients); n != 1 || l.definitions.clients["me"].calls != 1 {
			t.Errorf("%d clients are remembered", n)
		}
	})
}

// FuzzNarrowings checks that any query either narrows each watch by a definition that its
// canonical form makes again, or is refused with a parameter that the client gave.
func FuzzNarrowings(f *testing.F) {
	for _, seed := range []string{
		"", "filter=value.n+%3E+1", "labels.a=x%3Dy&fields.b.c=n,m&fields.b.c=o", "prefix=%ff", "filter.a=%00&filter=", "fields.=x", "fields.a=a..b",
		"labels.b.c=a+in+(", "filter.a=" + strings.Repeat("(", 99), "prefix.a=" + strings.Repeat("x", view.MaxText+1), "filter.a=1&filter=2",
		"by=a,b&sum=c&filter=value.n+%3E+1", "by.a=x&by.a=y&sum.b.c=z", "by=a..b", "sum=a,b&by=c", "by=a&fields=b", "sum.a=x",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	_, watches := newLookup(f, "a", "b.c")
	known := problem.Parameters{Once: []string{"prefix", "labels", "filter", "sum", "prefix.", "labels.", "filter.", "sum."}, Repeated: []string{"fields", "by", "fields.", "by."}}
	f.Fuzz(func(t *testing.T, text string, both bool) {
		query, p := problem.ParseQuery(text, known)
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
			part, p := watches[i].Narrow(t.Context(), all[i], "me")
			switch d := part.Definition(); {
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
func checkRefusal(t *testing.T, query url.Values, p *problem.Problem) {
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

// TestNotPrimedView checks that a view which is being made is not taken for its watch.
func TestNotPrimedView(t *testing.T) {
	l, _ := newLookup(t)
	w, err := l.config.Watches.Add(watch.Config{Name: "orders", Source: stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		if err := errors.Join(sink.Reset("e"), sink.Commit(1)); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})})
	if err != nil {
		t.Fatal(err)
	}
	part := w.NewRequestedView(watch.RequestedViewConfig{Account: memory.NewAccount(0, memory.NewCeiling(1<<20))})
	defer part.Close()
	if err := w.Prime(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := l.NotPrimed(&part.Watch); p.Status != 503 || p.Watch != "orders" || !strings.HasPrefix(p.Detail, `watch "orders" is primed, but the view of it is not`) {
		t.Errorf("%+v", p)
	}
}
