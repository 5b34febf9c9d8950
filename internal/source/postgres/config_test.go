package postgres

import (
	"errors"
	"regexp"
	"strings"
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
		"slot":          {URL: "postgres://wt@db/app", Slot: "Mine"},
		"reserved slot": {URL: "postgres://wt@db/app", Slot: "watchtide_mine"},
		"failover":      {URL: "postgres://wt@db/app", Failover: true},
		"little WAL":    {URL: "postgres://wt@db/app", MaxRetainedWAL: 1},
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

// TestSlotCommands: which slot is made.
func TestSlotCommands(t *testing.T) {
	for want, o := range map[string]slotOptions{
		`CREATE_REPLICATION_SLOT "mine" LOGICAL pgoutput NOEXPORT_SNAPSHOT`:                  {name: "mine"},
		`CREATE_REPLICATION_SLOT "mine" LOGICAL pgoutput (SNAPSHOT 'nothing', FAILOVER)`:     {name: "mine", failover: true},
		`CREATE_REPLICATION_SLOT "watchtide_*" TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT`: {temporary: true},
		`CREATE_REPLICATION_SLOT "watchtide_*" TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT`:   {temporary: true, export: true},
	} {
		got := regexp.MustCompile(`watchtide_[a-z0-9]{12}"`).ReplaceAllString(o.command(), `watchtide_*"`)
		if got != want {
			t.Errorf("%+v: %s, want %s", o, got, want)
		}
	}
}

// TestLostSlots: why a slot is made again.
func TestLostSlots(t *testing.T) {
	well := kept{Plugin: "pgoutput", RestartLSN: "0/1", Confirmed: "0/2", WALStatus: "reserved", retained: 5}
	if why := well.lost(10); why != "" {
		t.Errorf("a slot that is well: %s", why)
	}
	for want, change := range map[string]func(*kept){
		"invalidated it: idle_timeout": func(k *kept) { k.Invalidation = "idle_timeout" },
		`wal_status is "lost"`:         func(k *kept) { k.WALStatus = "lost" },
		"has removed WAL":              func(k *kept) { k.Conflicting = true },
		"and max_retained_wal is 10":   func(k *kept) { k.retained = 11 },
	} {
		k := well
		change(&k)
		if why := k.lost(10); !strings.Contains(why, want) {
			t.Errorf("%+v: %q, want %q", k, why, want)
		}
	}
}
