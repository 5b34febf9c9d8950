package predicate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/watchtide/watchtide/internal/view/internal/randomjson"
)

// dear are filters that could take very long for a large value, with and without a program.
var dear = []string{
	`value.s.matches('[ab]*a[ab]{450}z')`,
	`value.s.matches('(a+)+$') || value.s == ""`,
	`value.s.matches('[ab]*a[ab]{450}z') == true`,
	`(value.s + value.s).matches('(a|aa)+$')`,
	strings.Repeat("value.l != value.m || ", 80) + "value.l != value.m",
	strings.Repeat("value.s.contains(value.t) || ", 40) + "value.s.contains(value.t)",
	strings.Repeat("value.s == value.u && ", 80) + "value.l == value.m && value.s.size() == size(value.u)",
	`value.l.map(x, value.l) == value.l.map(x, value.l)`,
	`value.l.filter(x, value.l.size() > 3 && value.m == value.l) == []`,
	`(value.s == value.u ? value.l : value.m)[0] == 1 && dyn(value.l) == value.m && value.l.map(x, value.s).map(y, y + y) != []`,
	`value.l.exists(x, value.s.contains("b"))`,
	`value.l.exists(x, value.s.matches("(a+)+b"))`,
	`value.o.exists(x, value.o[x].matches("(a+)+b"))`,
	`[value.s].exists(x, x.matches('[ab]*a[ab]{450}z')) || [value.s, value.s].all(x, x.contains(value.u + "b"))`,
	strings.Repeat("(value.s + value.s).size() > 1 && ", 50) + "string(bytes(value.s)) == value.s",
}

// large is a value on which they do.
func large(n int) string {
	list := "[" + strings.Repeat("1,", n/10) + "1]"
	s := strings.Repeat("a", n)
	object := make([]string, 45)
	for i := range object {
		object[i] = fmt.Sprintf(`"k%d":"%s"`, i, s[:n/50])
	}
	return fmt.Sprintf(`{"l":%s,"m":%s,"s":"%s","u":"%s","t":"%sb","o":{%s}}`, list, list, s, s, s[:n/2], strings.Join(object, ","))
}

// TestWorkIsLimited: each of them is given up before it has done more than is allowed, and has
// a result for a small value.
func TestWorkIsLimited(t *testing.T) {
	in, small := input(t, large(600_000)), input(t, large(200))
	for _, text := range dear {
		p, err := Compile(text, 1<<12) // some are refused for larger values
		if err != nil {
			t.Errorf("%.60s: %v", text, err)
			continue
		}
		if _, err := p.Holds(small); errors.Is(err, ErrCost) {
			t.Errorf("%.60s: a small value: %v after %d units", text, err, small.Spent())
		}
		_, err = p.Holds(in)
		if most := 2*WorkLimit + 2*CostLimit + 10; in.Spent() > most {
			t.Errorf("%.60s takes %d units, want at most %d", text, in.Spent(), most)
		}
		if !errors.Is(err, ErrCost) {
			t.Errorf("%.60s: got %v after %d units, want %v", text, err, in.Spent(), ErrCost)
		}
	}
}

// TestGivenUpAlike: whether a filter is given up does not depend on the order in which the
// members of an object are visited.
func TestGivenUpAlike(t *testing.T) {
	members := make([]string, 160)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%03d":"%s"`, i, strings.Repeat("a", 5000))
	}
	members[80] = `"k080":"b"`
	text := "{" + strings.Join(members, ",") + "}"
	for _, filter := range []string{`value.exists(x, value[x].matches("^(a+)+b|^b"))`, `value.exists(x, value[x].matches("^(a+)+b|^b") && true)`} {
		p, err := Compile(filter, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		in := input(t, text)
		first, firstErr := p.Holds(in)
		for range 4 {
			if again, err := p.Holds(in); again != first || err != firstErr {
				t.Fatalf("%s: got %t, %v and %t, %v", filter, first, firstErr, again, err)
			}
		}
	}
}

// TestMostIsNotExceeded: no evaluation costs more than what is expected at most for a value of
// its size.
func TestMostIsNotExceeded(t *testing.T) {
	seen := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom(costly), rapid.SampledFrom(dear), rapid.Custom(func(t *rapid.T) string { return drawMatched(t, 2) })).Draw(t, "filter")
		value := rapid.OneOf(rapid.Just(large(rapid.IntRange(200, 4000).Draw(t, "size"))), rapid.Custom(randomjson.Value)).Draw(t, "value")
		p, err := Compile(text, len(value))
		if err != nil {
			t.Skip(err)
		}
		env, err := environment()
		if err != nil {
			t.Fatal(err)
		}
		tree, err := check(env, p.String())
		if err != nil {
			t.Fatal(err)
		}
		in := input(t, value)
		_, _ = p.Holds(in)
		most := p.most(tree.NativeRep().Expr(), len(value))
		if float64(in.Spent()) > most {
			t.Fatalf("%s of %.50s… (%d bytes) costs %d, expected %.0f", text, value, len(value), in.Spent(), most)
		}
		if p.Cheap() && in.Spent() > CheapLimit {
			t.Fatalf("%s is cheap, and costs %d", text, in.Spent())
		}
		seen[p.Cheap()]++
	})
	if len(seen) != 2 {
		t.Errorf("cheap filters, and others: %v, want some of both", seen)
	}
}

// TestCheap: what is compared with constants is cheap over the largest values, and what is
// searched, compared as a whole, or gone through is not.
func TestCheap(t *testing.T) {
	for text, want := range map[string]bool{
		`value.team == "a"`: true, `value.n > 3 && has(value.x)`: true, `value.a in ["a", "b"]`: true, `value.s.startsWith("a")`: true,
		`key.contains("a")`: true, `key.matches("^a")`: true, `labels.app == "a"`: true, `revision > 3`: true,
		`value.s.contains("a")`: false, `value.s.matches("^a")`: false, `labels.app.matches("^a")`: false, `key.matches("[ab]*a[ab]{450}z")`: false,
		`value.a == value.b`: false, `value.l.exists(x, x == 1)`: false, `value == {}`: false, `size(value.l) > 3`: false,
	} {
		if got := compile(t, text).Cheap(); got != want {
			t.Errorf("%s is cheap: %t, want %t", text, got, want)
		}
	}
	p, err := Compile(`value.a == value.b`, 4<<10)
	if err != nil || !p.Cheap() {
		t.Errorf("a comparison of small values: %v, is cheap: %t", err, p.Cheap())
	}
}
