package access

import (
	"fmt"
	"slices"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// TestExceptOfRules: what rules leave out adds up like what they show, and a rule that leaves out
// something differs from one that does not.
func TestExceptOfRules(t *testing.T) {
	with := func(r ...Rule) *Policy {
		return compile(t, PolicyConfig{Roles: []Role{{Name: "anyone", When: "true"}, {Name: "staff", When: `"staff" in principal.groups`}}, Watches: []WatchRules{{Name: "w", Rules: r}}})
	}
	one := with(Rule{Role: "anyone", Read: "true", Write: "true", Except: []string{"secret"}}, Rule{Role: "staff", Read: "value.open", Fields: []string{"secret"}})
	r := &stream.Resource{Key: "k", Revision: 1, Value: []byte(`{"a":1,"open":true,"secret":2}`)}
	for _, c := range []struct {
		groups []string
		want   string
	}{
		{nil, `{"a":1,"open":true}`}, {[]string{"staff"}, `{"a":1,"open":true,"secret":2}`},
	} {
		d, _ := one.View(user("ann", c.groups...), "w")
		if got, err := d.Project(*r); err != nil || string(got.Value) != c.want {
			t.Errorf("%q sees %s, %v, want %s", c.groups, got.Value, err, c.want)
		}
		if got := one.Write(user("ann", c.groups...), "w", "k", r, r); got.Allowed {
			t.Errorf("%q replaces what it does not see all of", c.groups)
		}
	}
}

func TestAdditions(t *testing.T) {
	for _, c := range []struct {
		rules []Rule
		want  []string
	}{
		{[]Rule{{Role: "anyone", Read: "true", Except: []string{"a"}}}, nil},
		{[]Rule{{Role: "anyone", Read: "true", Except: []string{"a"}}, {Role: "anyone", Read: "true"}}, []string{"rule 1 leaves out a, but rule 2 shows it"}},
		{[]Rule{{Role: "staff", Read: "value.x", Except: []string{"a"}}, {Role: "anyone", Read: "true", Fields: []string{"a.b"}}}, []string{"rule 1 leaves out a, but rule 2 shows it"}},
		{[]Rule{{Role: "staff", Read: "value.x", Except: []string{"a"}}, {Role: "staff", Read: "value.x", Fields: []string{"b"}}}, nil},
		{[]Rule{{Role: "staff", Read: "value.x", Except: []string{"a.b"}}, {Role: "staff", Read: "value.x", Except: []string{"a"}}}, []string{"rule 2 leaves out a, but rule 1 shows it"}},
		{[]Rule{{Role: "anyone", Read: "true", Except: []string{"a"}}, {Role: "staff", Read: "true"}}, nil},
		{[]Rule{{Role: "staff", Read: "true", Except: []string{"a"}}, {Role: "staff", Read: "value.x"}}, nil},
		{[]Rule{{Role: "staff", Read: "true", Except: []string{"a"}}, {Role: "staff", Write: "true"}}, nil},
	} {
		p := compile(t, PolicyConfig{Roles: []Role{{Name: "anyone", When: "true"}, {Name: "staff", When: `"staff" in principal.groups`}}, Watches: []WatchRules{{Name: "w", Rules: c.rules}}})
		var got []string
		for _, a := range p.Additions() {
			got = append(got, fmt.Sprint(a))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %q, want %q", c.rules, got, c.want)
		}
	}
}
