package decimal

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

// TestVectors has what other implementations must do the same. An empty sum means that the number
// cannot be added.
func TestVectors(t *testing.T) {
	for _, c := range []struct{ in, text, sum string }{
		{"0", "0", "0"}, {"-0", "0", "0"}, {"0e999999999999999999999", "0", "0"}, {"1", "1", "1"}, {"1.0", "1", "1"}, {"1e0", "1", "1"},
		{"-12.50", "-12.5", "-12.5"}, {"1E2", "100", "100"}, {"0.001", "0.001", "0.001"}, {"1e-3", "0.001", "0.001"},
		{"9007199254740993", "9007199254740993", "9007199254740993"},
		{"1e63", "1" + strings.Repeat("0", 63), "1" + strings.Repeat("0", 63)},
		{"1e64", "1e64", ""}, {"1e-64", "0." + strings.Repeat("0", 63) + "1", "0." + strings.Repeat("0", 63) + "1"}, {"1e-65", "1e-65", ""},
		{"1e999999999", "1e999999999", ""}, {"-10e999999998", "-1e999999999", ""},
	} {
		n, ok := Parse([]byte(c.in))
		if !ok || n.String() != c.text {
			t.Errorf("%s: %q, %v; want %q", c.in, n, ok, c.text)
		}
		units, fits := n.Units()
		if fits != (c.sum != "") || fits && string(Append(nil, units)) != c.sum {
			t.Errorf("%s: %s, %v; want %q", c.in, units, fits, c.sum)
		}
	}
	for _, in := range []string{
		"", "-", "+1", "01", "1.", ".5", "1e", "1e+", "1 ", "0x1", "NaN", "true", `"1"`, "1e1000000001", "1e-99999999999999999999",
		strings.Repeat("7", 129),
	} {
		if n, ok := Parse([]byte(in)); ok {
			t.Errorf("%.20q is %v, want none", in, n)
		}
	}
}

// FuzzParse compares with the exact numbers of math/big, and with what encoding/json accepts.
func FuzzParse(f *testing.F) {
	for _, in := range []string{"0", "-1.5e3", "1e-64", "123456789012345678901234567890", "0.1", "1e400", "-0.0"} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		n, ok := Parse([]byte(in))
		isNumber := in != "" && strings.IndexByte("-0123456789", in[0]) >= 0 && !strings.ContainsAny(in, " \t\r\n") && json.Valid([]byte(in))
		if ok && !isNumber {
			t.Fatalf("%q is %v, and no number of JSON", in, n)
		}
		units, fits := n.Units()
		if !ok || !fits {
			return
		}
		want, parsed := new(big.Rat).SetString(in)
		got, _ := new(big.Rat).SetString(string(Append(nil, units)))
		same, _ := new(big.Rat).SetString(n.String())
		if !parsed {
			return // math/big accepts no such exponent
		}
		if want.Cmp(got) != 0 || want.Cmp(same) != 0 {
			t.Fatalf("%q is %s and %s", in, Append(nil, units), n)
		}
		if again, ok := Parse([]byte(n.String())); !ok || again != n {
			t.Fatalf("%q: %s is read as %s", in, n, again)
		}
	})
}
