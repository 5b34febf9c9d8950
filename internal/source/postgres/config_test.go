package postgres

import (
	"errors"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

func TestURLs(t *testing.T) {
	for text, want := range map[string]bool{
		"postgres://wt@db/app":                       true,
		"postgresql://wt@db:5432/app":                true,
		"postgres://wt@a:1,b:2/app?sslmode=disable":  true,
		"postgres://wt@[::1]:5432/app":               true,
		"postgres://db/app":                          true,
		"postgres://wt:secret@db/app":                false,
		"postgres://wt@db/app?password=secret":       false,
		"postgres://wt@db/":                          false,
		"postgres:///app":                            false,
		"mysql://wt@db/app":                          false,
		"host=db dbname=app":                         false,
		"postgres://wt@db/app?sslmode=%zz":           false,
		"postgres://wt@db/app ":                      false,
		"postgres://wt@db/app?target_session_attrs=": true,
	} {
		if got := ValidURL(text); got != want {
			t.Errorf("%s is valid: %v, want %v", text, got, want)
		}
	}
}

func TestTableNames(t *testing.T) {
	for text, want := range map[string][2]string{
		"orders":                 {"public", "orders"},
		"sales.orders":           {"sales", "orders"},
		`sales."a.b"`:            {"sales", "a.b"},
		`"Sa""les"."Or ders"`:    {`Sa"les`, "Or ders"},
		`"orders"`:               {"public", "orders"},
		"Orders":                 {"public", "Orders"},
		"":                       {},
		".orders":                {},
		"sales.":                 {},
		"a.b.c":                  {},
		`"open`:                  {},
		`"a"b`:                   {},
		`a"b`:                    {},
		string(make([]byte, 64)): {},
	} {
		schema, name, ok := parseTable(text)
		if ok != (want[0] != "") || ok && (schema != want[0] || name != want[1]) {
			t.Errorf("%q is %q, %q, %v, want %q", text, schema, name, ok, want)
		}
	}
}

func TestInvalidConfigurations(t *testing.T) {
	var invalid *stream.InvalidError
	for name, c := range map[string]Config{
		"no url":        {},
		"a publication": {URL: "postgres://db/app", Publication: string(make([]byte, 64))},
		"too short":     {URL: "postgres://db/app", StallAfter: 1},
	} {
		if _, err := New(c); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	u, err := New(Config{URL: "postgres://db/app"})
	if err != nil {
		t.Fatal(err)
	}
	for name, table := range map[string]Table{
		"no table":         {},
		"a key twice":      {Name: "t", Key: []string{"a", "a"}},
		"an empty column":  {Name: "t", Columns: []string{""}},
		"too many schemas": {Name: "a.b.c"},
	} {
		if _, err := u.Source(table); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
