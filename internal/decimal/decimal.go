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
	// mostDigits is how many digits a number may have, without zeros at both ends.
	mostDigits = 2 * Places
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
	var n Number
	rest := text
	if len(rest) > 0 && rest[0] == '-' {
		n.negative, rest = true, rest[1:]
	}
	whole, rest := digits(rest)
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
		return Number{}, false
	}
	var fraction []byte
	if len(rest) > 0 && rest[0] == '.' {
		if fraction, rest = digits(rest[1:]); len(fraction) == 0 {
			return Number{}, false
		}
	}
	exponent, ok := exponentOf(rest)
	if !ok {
		return Number{}, false
	}
	all := strings.TrimLeft(string(whole)+string(fraction), "0")
	n.digits = strings.TrimRight(all, "0")
	if n.digits == "" {
		return Number{}, true // also -0, and 0 with any exponent
	}
	exponent += len(all) - len(n.digits) - len(fraction)
	if len(n.digits) > mostDigits || exponent > mostExponent || exponent < -mostExponent {
		return Number{}, false
	}
	n.exponent = exponent
	return n, true
}

// digits returns the digits at the beginning of a text, and what follows.
func digits(text []byte) (digits, rest []byte) {
	i := 0
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	return text[:i], text[i:]
}

// exponentOf reads the exponent of a number, if there is one. One of too many digits is beyond
// mostExponent whatever the digits of the number.
func exponentOf(text []byte) (exponent int, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	text = text[1:]
	negative := len(text) > 0 && text[0] == '-'
	if negative || len(text) > 0 && text[0] == '+' {
		text = text[1:]
	}
	all, rest := digits(text)
	if len(all) == 0 || len(rest) > 0 {
		return 0, false
	}
	significant := strings.TrimLeft(string(all), "0")
	if len(significant) > 17 {
		significant = "99999999999999999"
	}
	if significant != "" {
		exponent, _ = strconv.Atoi(significant) // of at most 17 digits
	}
	if negative {
		exponent = -exponent
	}
	return exponent, true
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
