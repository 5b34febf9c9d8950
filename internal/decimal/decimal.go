// Package decimal reads the numbers of JSON without losing digits, and adds them exactly, in a
// bounded number of bytes.
package decimal

import (
	"math/big"
	"strconv"
	"strings"
)

const (
	// Places is how many digits before the point, and how many after it, a number may have that
	// can be added.
	Places = 64
	// mostExponent is the largest exponent.
	mostExponent = 1_000_000_000
)

// Number is a number as it was read: an integer without zeros at its end, times a power of ten.
// The zero value is 0. Equal numbers have equal Numbers.
type Number struct {
	negative bool
	digits   string // "" is 0
	exponent int
}

// Parse reads a number of JSON. It returns false for anything else, for a number of more than 128
// digits, zeros at both ends left aside, and for one with an exponent beyond a thousand million.
func Parse(text []byte) (Number, bool) {
	d := Scan(text)
	exponent := d.Exponent - int64(d.N)
	switch {
	case !d.Whole || d.Cut:
		return Number{}, false
	case d.N == 0:
		return Number{}, true // also -0, and 0 with any exponent
	case exponent > mostExponent || exponent < -mostExponent:
		return Number{}, false
	}
	digits := make([]byte, d.N)
	for i := range digits {
		digits[i] = '0' + d.Digits[i]
	}
	return Number{d.Negative, string(digits), int(exponent)}, true
}

// String returns the number as JSON: the same text for equal numbers. Numbers that can be added
// are written without an exponent.
func (n Number) String() string {
	if n.digits == "" {
		return "0"
	}
	var out strings.Builder
	if n.negative {
		out.WriteByte('-')
	}
	switch point := len(n.digits) + n.exponent; {
	case !n.fits():
		out.WriteString(n.digits + "e" + strconv.Itoa(n.exponent))
	case n.exponent >= 0:
		out.WriteString(n.digits + strings.Repeat("0", n.exponent))
	case point > 0:
		out.WriteString(n.digits[:point] + "." + n.digits[point:])
	default:
		out.WriteString("0." + strings.Repeat("0", -point) + n.digits)
	}
	return out.String()
}

// fits reports whether the number has at most Places digits before the point and after it.
func (n Number) fits() bool {
	return n.exponent >= -Places && len(n.digits)+n.exponent <= Places
}

// Units returns the number in units of Unit; false if it cannot be added: it has more than Places digits
// before the point or after it.
func (n Number) Units() (*big.Int, bool) {
	if !n.fits() {
		return nil, false
	}
	units := new(big.Int)
	if n.digits == "" {
		return units, true
	}
	if len(n.digits) <= 18 {
		small, _ := strconv.ParseInt(n.digits, 10, 64) // of at most 18 digits
		units.SetInt64(small)
	} else {
		units.SetString(n.digits, 10)
	}
	units.Mul(units, powers[n.exponent+Places])
	if n.negative {
		units.Neg(units)
	}
	return units, true
}

// powers are the powers of ten. Nobody writes to them.
var powers = func() (all [2*Places + 1]*big.Int) {
	all[0] = big.NewInt(1)
	for i := 1; i < len(all); i++ {
		all[i] = new(big.Int).Mul(all[i-1], big.NewInt(10))
	}
	return all
}()

// Append appends a number of units, as Units returns them and their sums, as JSON without an
// exponent.
func Append(to []byte, units *big.Int) []byte {
	if units.Sign() < 0 {
		to = append(to, '-')
	}
	digits := new(big.Int).Abs(units).String()
	if len(digits) <= Places {
		digits = strings.Repeat("0", Places+1-len(digits)) + digits
	}
	point := len(digits) - Places
	to = append(to, digits[:point]...)
	if fraction := strings.TrimRight(digits[point:], "0"); fraction != "" {
		to = append(append(to, '.'), fraction...)
	}
	return to
}
