package order

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func sortKey(value string, descending bool) []byte {
	return AppendValue(nil, []byte(value), descending)
}

// groups returns the values of the test vectors in ascending order; those of a group are equal.
func groups(t testing.TB) (out [][]string) {
	text, err := os.ReadFile("testdata/values.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestValues compares each value of the test vectors with each other one.
func TestValues(t *testing.T) {
	all := groups(t)
	for i, one := range all {
		for j, other := range all {
			for _, a := range one {
				for _, b := range other {
					want := compare(i, j)
					if got := bytes.Compare(sortKey(a, false), sortKey(b, false)); got != want {
						t.Errorf("%s compares with %s as %d, want %d", a, b, got, want)
					}
					if got := bytes.Compare(sortKey(a, true), sortKey(b, true)); got != -want {
						t.Errorf("%s compares with %s as %d in descending order, want %d", a, b, got, -want)
					}
				}
			}
		}
	}
}

func TestAbsentIsLast(t *testing.T) {
	for _, group := range groups(t) {
		for _, descending := range []bool{false, true} {
			if bytes.Compare(sortKey(group[0], descending), AppendAbsent(nil)) >= 0 {
				t.Errorf("%s does not come before an absent one (descending: %t)", group[0], descending)
			}
		}
	}
}

func TestLongValues(t *testing.T) {
	a := strings.Repeat("a", MaxText)
	nines := strings.Repeat("9", MaxDigits)
	for _, row := range []struct {
		one, other string
		want       int
	}{
		{`"` + a + `"`, `"` + a + `z"`, 0},
		{`"` + a[1:] + `a"`, `"` + a[1:] + `b"`, -1},
		{`"` + a[1:] + `é"`, `"` + a[1:] + `日"`, 0}, // neither fits
		{nines + "1", nines + "2", 0},
		{nines + "1", nines + "11", -1},
		{"1e" + strings.Repeat("9", 1000), "2e" + strings.Repeat("9", 1001), -1},
		{"1e" + strings.Repeat("9", 1000), "1e" + strings.Repeat("9", 1001), 0},
	} {
		if got := bytes.Compare(sortKey(row.one, false), sortKey(row.other, false)); got != row.want {
			t.Errorf("%.40s… compares with %.40s… as %d, want %d", row.one, row.other, got, row.want)
		}
	}
}

// TestNumbers compares numbers with those of math/big.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Custom(func(t *rapid.T) string {
			digits := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?`).Draw(t, "digits")
			if rapid.Bool().Draw(t, "scaled") {
				digits += fmt.Sprintf("e%d", rapid.IntRange(-30, 30).Draw(t, "exponent"))
			}
			return digits
		})
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		if got, want := bytes.Compare(sortKey(a, false), sortKey(b, false)), x.Cmp(y); got != want {
			t.Fatalf("%s compares with %s as %d, want %d", a, b, got, want)
		}
	})
}

// TestTexts compares texts with Go's comparison of their code points.
func TestTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("\x00\x01aé日😀\"\\")), 0, 6, -1)
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		quote := func(s string) string { q, _ := json.Marshal(s); return string(q) }
		for _, descending := range []bool{false, true} {
			want := strings.Compare(a, b)
			if descending {
				want = -want
			}
			if got := bytes.Compare(sortKey(quote(a), descending), sortKey(quote(b), descending)); got != want {
				t.Fatalf("%q compares with %q as %d, want %d (descending: %t)", a, b, got, want, descending)
			}
		}
	})
}

// FuzzSortKey encodes any JSON values: sort keys are bounded, and none is the beginning of another
// one.
func FuzzSortKey(f *testing.F) {
	all := groups(f)
	for i := range all {
		f.Add(all[i][0], all[(i+1)%len(all)][0])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, descending := range []bool{false, true} {
			x, y := tested(t, a, descending), tested(t, b, descending)
			if x != nil && y != nil && !bytes.Equal(x, y) && (bytes.HasPrefix(x, y) || bytes.HasPrefix(y, x)) {
				t.Errorf("the sort keys of %q and %q begin with each other: %x and %x", a, b, x, y)
			}
		}
	})
}

// tested returns the sort key of a value; nil if it is no JSON.
func tested(t *testing.T, value string, descending bool) []byte {
	value = strings.Trim(value, " \t\r\n")
	if !json.Valid([]byte(value)) {
		return nil
	}
	k := sortKey(value, descending)
	if most := 3 + 2*MaxText; len(k) > most {
		t.Errorf("the sort key of %.40q has %d bytes, want at most %d", value, len(k), most)
	}
	return k
}

func compare(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
