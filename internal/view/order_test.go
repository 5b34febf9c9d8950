package view

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

func windowOf(t testing.TB, p Params) *Definition {
	t.Helper()
	d, err := Parse(p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOrder(t *testing.T) {
	d := windowOf(t, Params{Order: `-a."x.y" , b`, Limit: "5"})
	sorted := []string{
		`{"a":{"x.y":[]}}`, `{"a":{"x.y":"b"}}`, `{"a":{"x.y":2},"b":1}`, `{"a":{"x.y":2},"b":2}`, `{"a":{"x.y":2}}`,
		`{"a":{"x.y":1},"b":3}`, `{"a":{"x.y":9,"x.y":0}}`, `{"a":{"\u0078.y":null}}`, `{"a":[{"x.y":5}],"b":1}`, `{"b":2}`, `7`,
	}
	for i := range sorted[1:] {
		a, b := d.AppendSortKey(nil, stream.Resource{Value: []byte(sorted[i])}), d.AppendSortKey(nil, stream.Resource{Value: []byte(sorted[i+1])})
		if bytes.Compare(a, b) > 0 || i < len(sorted)-2 && bytes.Equal(a, b) {
			t.Errorf("%s does not come before %s", sorted[i], sorted[i+1])
		}
	}
}

// TestOrderHasACanonicalForm: what is equal has one ID, and windows of one order share another one.
func TestOrderHasACanonicalForm(t *testing.T) {
	a := windowOf(t, Params{Order: ` -a.b, c,"-d"`, Limit: "5", Offset: "0"})
	b := windowOf(t, Params{Order: `-a."b","c",  "-d"`, Limit: "05"})
	if a.ID() != b.ID() || a.Params().Order != `-a.b,c,"-d"` {
		t.Errorf("%q and %q", a.Params().Order, b.Params().Order)
	}
	again := windowOf(t, a.Params())
	if again.ID() != a.ID() {
		t.Errorf("the parameters %+v make another definition", a.Params())
	}
	other := windowOf(t, Params{Order: `-a.b,c,"-d"`, Limit: "5", Offset: "5"})
	if other.ID() == a.ID() || other.OrderID() != a.OrderID() {
		t.Error("a window with another offset has the same ID, or belongs to another order")
	}
	for _, p := range []Params{{Order: `a.b,c,"-d"`, Limit: "5"}, {Order: `-a.b,c,-d`, Limit: "5"}, {Order: `-a.b,c,"-d"`, Limit: "5", Prefix: "x"}} {
		if windowOf(t, p).OrderID() == a.OrderID() {
			t.Errorf("%+v has the order of another definition", p)
		}
	}
	if a.IsWhole() {
		t.Error("a window is all of the watch")
	}
}

// TestCursor: a cursor belongs to its order, whatever else the definition selects.
func TestCursor(t *testing.T) {
	d := windowOf(t, Params{Order: "-n", Limit: "5"})
	place := string(d.AppendSortKey(nil, stream.Resource{Value: []byte(`{"n":7}`)})) + "key"
	cursor := d.Cursor(place)
	after := windowOf(t, Params{Order: " -n", Limit: "7", After: cursor, Prefix: "x"})
	if w, _ := after.Window(); w.After != place || w.Limit != 7 {
		t.Errorf("the window is %+v, want it after %q", w, place)
	}
	if again := windowOf(t, after.Params()); again.ID() != after.ID() {
		t.Errorf("the parameters %+v make another definition", after.Params())
	}
	if d.Cursor(strings.Repeat("x", MaxCursor)) != "" {
		t.Error("a cursor is longer than one may be")
	}
	for _, p := range []Params{
		{Order: "n", Limit: "5", After: cursor}, {Order: "-n", Limit: "5", Offset: "1", After: cursor}, {After: cursor},
		{Order: "-n", Limit: "5", After: cursor[:5]}, {Order: "-n", Limit: "5", After: "!" + cursor}, {Order: "-n", Limit: "5", After: strings.Repeat("A", MaxCursor+1)},
	} {
		var bad *Error
		if _, err := Parse(p); !errors.As(err, &bad) || bad.Parameter != "after" {
			t.Errorf("%.60v: %v, want a mistake in after", p, err)
		}
	}
}

func TestBadOrder(t *testing.T) {
	for _, test := range []struct {
		p         Params
		parameter string
		offset    int
	}{
		{Params{Order: "a,,b", Limit: "1"}, "order", 2},
		{Params{Order: "-a..b", Limit: "1"}, "order", 3},
		{Params{Order: "--a", Limit: "1"}, "order", 1},
		{Params{Order: "b, - -a", Limit: "1"}, "order", 5},
		{Params{Order: "b,+a", Limit: "1"}, "order", 2},
		{Params{Order: "-+a", Limit: "1"}, "order", 1},
		{Params{Order: "b,a:desc", Limit: "1"}, "order", 3},
		{Params{Order: "a.b:ASC , c", Limit: "1"}, "order", 3},
		{Params{Order: "a  Desc,b", Limit: "1"}, "order", 3},
		{Params{Order: "a asc", Limit: "1"}, "order", 2},
		{Params{Order: "a,-a", Limit: "1"}, "order", 0},
		{Params{Order: `a.b,"a"."b"`, Limit: "1"}, "order", 0},
		{Params{Order: "a\xff", Limit: "1"}, "order", 1},
		{Params{Order: strings.Repeat("a.", 2000) + "a", Limit: "1"}, "order", MaxText},
		{Params{Order: strings.Repeat("a,", MaxColumns) + "a", Limit: "1"}, "order", 0},
		{Params{Order: "a"}, "limit", 0},
		{Params{Order: "a", Limit: "1", Offset: "4294967296"}, "offset", 0},
		{Params{Offset: "1"}, "offset", 0},
		{Params{Order: "a", Limit: strings.Repeat("9", 50)}, "limit", 0},
	} {
		_, err := Parse(test.p)
		var bad *Error
		if !errors.As(err, &bad) || bad.Parameter != test.parameter || bad.Offset != test.offset {
			t.Errorf("%.40q: %v, want a mistake in %s at %d", test.p.Order, err, test.parameter, test.offset)
		}
	}
}

// TestSignsInNames: names in double quotes may have what else would be a direction, and so may other names.
func TestSignsInNames(t *testing.T) {
	for order, want := range map[string]string{
		`"-a"`: `"-a"`, `-"+a".b`: `-"+a".b`, `"a:desc"`: `"a:desc"`, `-b."a:ASC"`: `-b."a:ASC"`, `a.-b`: `a.-b`, `a:desc.b`: `a:desc.b`,
		`a:b,"desc",asc`: `a:b,desc,asc`, `a:description`: `a:description`, `"-a:desc"`: `"-a:desc"`,
	} {
		d := windowOf(t, Params{Order: order, Limit: "1"})
		if d.Params().Order != want || windowOf(t, d.Params()).ID() != d.ID() {
			t.Errorf("%s: %s, want %s", order, d.Params().Order, want)
		}
	}
	for _, wrong := range []string{"-a", "a,+b", " - a"} {
		for _, by := range [][]string{{wrong}, {"s"}} {
			_, err := ParseGrouping(by, wrong)
			var bad *Error
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), "double quotes") {
				t.Errorf("counts by %q and of %q: %v", by, wrong, err)
			}
		}
	}
	g, err := ParseGrouping([]string{`"-a".b,a.-b,a:desc`}, `"+s"`)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseGrouping(g.By(), g.Sum())
	if err != nil || again.ID() != g.ID() {
		t.Errorf("%q and %q: %v", g.By(), g.Sum(), err)
	}
}

// TestWordsOfWrongOrders: an error says what would be right, and quotes no value that was not sent.
func TestWordsOfWrongOrders(t *testing.T) {
	nines := strings.Repeat("9", 41)
	for _, c := range []struct {
		p    Params
		want string
	}{
		{Params{Order: "cpu:desc"}, "order, column 4: a direction is not written like this: want -cpu for descending, and cpu for ascending"},
		{Params{Order: "cpu  desc"}, "order, column 6: a direction is not written like this: want -cpu for descending"},
		{Params{Order: "--cpu"}, `order, column 2: unexpected -: a name that begins with a sign is written in double quotes: "-a"`},
		{Params{Order: "cpu,-cpu"}, "the field cpu is named twice"},
		{Params{Order: "a", Limit: nines}, `"` + nines[:40] + `"…: want 1 to 1000`},
		{Params{Order: "a", Limit: nines[:40]}, `"` + nines[:40] + `": want 1 to 1000`},
		{Params{Limit: "1"}, "limit, column 1: a limit belongs to an order: want order too"},
	} {
		if _, err := Parse(c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.p, err, c.want)
		}
	}
}

// FuzzOrder parses any order, and its canonical form, and sorts any value by it.
func FuzzOrder(f *testing.F) {
	f.Add("-a,b", `{"a":1}`)
	f.Add(`"-a".b`, `{"-a":{"b":[1]}}`)
	f.Add("a.b", `{"a":{"b":`)
	f.Fuzz(func(t *testing.T, order, value string) {
		d, err := Parse(Params{Order: order, Limit: "1"})
		if err != nil || order == "" {
			return
		}
		again, err := Parse(d.Params())
		if err != nil || again.ID() != d.ID() {
			t.Fatalf("the canonical form %q of %q: %v", d.Params().Order, order, err)
		}
		r := stream.Resource{Value: []byte(value)}
		if a, b := d.AppendSortKey(nil, r), again.AppendSortKey(nil, r); !bytes.Equal(a, b) {
			t.Fatalf("%q sorts by %x, its canonical form by %x", value, a, b)
		}
	})
}

// TestMoved: a window that was moved is the one that Parse returns for its place.
func TestMoved(t *testing.T) {
	from := Params{Order: "-n,name", Limit: "5", Offset: "3", Filter: `value.n > 1`, Labels: "a=b", Prefix: "p/", Fields: []string{"n", "name"},
		Grants: []Grant{{Filter: `value.team == "red"`, Fields: []string{"n", "labels"}}}}
	d := windowOf(t, from)
	cursor := d.Cursor(string(d.AppendSortKey(nil, stream.Resource{Value: []byte(`{"n":7}`)})) + "key")
	for _, to := range []Params{{Limit: "5", Offset: "3"}, {Limit: "9"}, {Limit: "1", Offset: "7"}, {Limit: "2", After: cursor}, {Limit: "3", Offset: "1"}} {
		moved, err := d.Moved(to)
		if err != nil {
			t.Fatal(err)
		}
		whole := from
		whole.Limit, whole.Offset, whole.After = to.Limit, to.Offset, to.After
		parsed := windowOf(t, whole)
		if moved.ID() != parsed.ID() || moved.OrderID() != parsed.OrderID() || !reflect.DeepEqual(moved.Params(), parsed.Params()) {
			t.Errorf("%+v: got %+v, want %+v", to, moved.Params(), parsed.Params())
		}
		r := stream.Resource{Key: "p/k", Value: []byte(`{"n":7,"team":"red","name":"x","labels":{"a":"b","x":"y"}}`)}
		got, gotErr := moved.Matches(r)
		want, wantErr := parsed.Matches(r)
		if !bytes.Equal(moved.AppendSortKey(nil, r), parsed.AppendSortKey(nil, r)) || !got || !want || gotErr != nil || wantErr != nil {
			t.Errorf("%+v: the window is of other resources, or in another order", to)
		}
		d = moved
	}
	for _, to := range []Params{{}, {Limit: "0"}, {Limit: "1", Offset: "-1"}, {Limit: "1", Offset: "1", After: cursor}, {Limit: "1", After: "x"}} {
		if _, err := d.Moved(to); err == nil {
			t.Errorf("%+v is a place", to)
		}
	}
}
