package decimal

import (
	"encoding/json"
	"fmt"
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

// TestScan: what is read of a number, also of one that is too long or no number.
func TestScan(t *testing.T) {
	sevens := strings.Repeat("7", MaxDigits)
	for text, want := range map[string]string{
		"0": "0 whole", "-0.00": "0 whole", "0e7": "0 whole", "12.50": "125 at 2 whole", "-0.0012e3": "-12 at 1 whole",
		"1e999999999999": "1 at 1000000000000 whole", "1e99999999999999999999": "1 at 1099511627776 whole", "1e-99999999999999999999": "1 at -1099511627776 whole",
		sevens + "7": sevens + " at 129 cut whole", sevens + "0": sevens + " at 129 whole", "1" + strings.Repeat("0", 300): "1 at 301 whole",
		"": "0", "-": "0", "01": "1 at 1", "1.": "1 at 1", "1e": "1 at 1", "1x": "1 at 1", ".5": "5 at 0", "1e5x": "1 at 6",
	} {
		d := Scan([]byte(text))
		var got strings.Builder
		if d.Negative && d.N > 0 {
			got.WriteByte('-')
		}
		for _, c := range d.Digits[:d.N] {
			got.WriteByte('0' + c)
		}
		if d.N == 0 {
			got.WriteByte('0')
		} else {
			fmt.Fprintf(&got, " at %d", d.Exponent)
		}
		if d.Cut {
			got.WriteString(" cut")
		}
		if d.Whole {
			got.WriteString(" whole")
		}
		if got.String() != want {
			t.Errorf("%.30q: %s, want %s", text, got.String(), want)
		}
	}
}
