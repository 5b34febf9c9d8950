package order

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"unicode/utf8"
)

// What of a value counts. So a sort key has a bounded number of bytes.
const (
	MaxText   = 256 // bytes of a text, whole code points
	MaxDigits = 128 // significant digits of a number
	// MaxExponent is the largest exponent of ten of a number. Numbers beyond it compare by their
	// digits alone.
	MaxExponent = 1 << 40
)

// The kinds of values, in their order. No kind is 0 or 255, so that the inverse of one is
// neither, and is less than absent.
const (
	isNull = 1 + iota
	isFalse
	isTrue
	isNegative
	isZero
	isPositive
	isText
	isOther
)

// isAbsent is greater than all others, inverted or not.
const isAbsent = 0xff

// AppendAbsent appends the sort key of a member that is absent.
func AppendAbsent(dst []byte) []byte { return append(dst, isAbsent) }

// AppendValue appends the sort key of a value: JSON text without white space around it. No sort
// key is the beginning of another one, so those of several members can follow each other.
func AppendValue(dst, value []byte, descending bool) []byte {
	from := len(dst)
	dst = appendAscending(dst, value)
	if descending {
		invert(dst[from:])
	}
	return dst
}

func appendAscending(dst, value []byte) []byte {
	if len(value) == 0 {
		return append(dst, isOther)
	}
	switch c := value[0]; {
	case c == 'n':
		return append(dst, isNull)
	case c == 'f':
		return append(dst, isFalse)
	case c == 't':
		return append(dst, isTrue)
	case c == '"':
		return appendText(append(dst, isText), value)
	case c == '-' || '0' <= c && c <= '9':
		return appendNumber(dst, value)
	}
	return append(dst, isOther)
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

// appendText appends the text of a JSON string. A zero byte is followed by 255, and the text by
// 0 and 1, so that a text comes before those that begin with it.
func appendText(dst, quoted []byte) []byte {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') >= 0 || !utf8.Valid(text) {
		var s string
		if json.Unmarshal(quoted, &s) == nil {
			text = []byte(s)
		}
	}
	for _, c := range whole(text) {
		if dst = append(dst, c); c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 1)
}

// whole returns the code points at the beginning of a text that fit into MaxText bytes.
func whole(text []byte) []byte {
	if len(text) <= MaxText {
		return text
	}
	n := MaxText
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// appendNumber appends a number as its kind, its exponent, and its digits two by two: what
// follows the kind is inverted if the number is negative.
func appendNumber(dst, text []byte) []byte {
	d := parse(text)
	if d.n == 0 {
		return append(dst, isZero)
	}
	kind := byte(isPositive)
	if d.negative {
		kind = isNegative
	}
	dst = append(dst, kind)
	from := len(dst)
	dst = appendExponent(dst, d.exponent)
	for i := 0; i < d.n; i += 2 {
		dst = append(dst, 1+10*d.digits[i]+d.digits[i+1])
	}
	dst = append(dst, 0)
	if d.negative {
		invert(dst[from:])
	}
	return dst
}

// mostInByte is the largest exponent that takes one byte.
const mostInByte = 100

func appendExponent(dst []byte, e int64) []byte {
	switch {
	case e > mostInByte:
		return binary.BigEndian.AppendUint64(append(dst, 0xff), uint64(e))
	case e < -mostInByte:
		return binary.BigEndian.AppendUint64(append(dst, 0), uint64(e+2*MaxExponent))
	}
	return append(dst, byte(0x80+e))
}

// decimal is the number 0.d₀d₁d₂… × 10^exponent. The first digit is not 0, nor is the last one.
type decimal struct {
	negative bool
	digits   [MaxDigits + 1]byte // a 0 follows the last one
	n        int                 // how many there are; 0: the number is zero
	exponent int64
}

// parse reads a JSON number. What is no digit where there should be one ends it.
func parse(text []byte) (d decimal) {
	if len(text) > 0 && text[0] == '-' {
		d.negative, text = true, text[1:]
	}
	point := int64(0) // digits before the point, without leading zeros
	fraction := false
	i := 0
	for ; i < len(text); i++ {
		c := text[i]
		if c == '.' {
			fraction = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		if c == '0' && d.n == 0 {
			if fraction {
				point--
			}
			continue
		}
		if !fraction {
			point++
		}
		if d.n < MaxDigits {
			d.digits[d.n] = c - '0'
			d.n++
		}
	}
	for d.n > 0 && d.digits[d.n-1] == 0 {
		d.n--
	}
	d.exponent = bound(point + exponentOf(text[i:]))
	return d
}

// exponentOf reads the exponent of a JSON number, from its letter on.
func exponentOf(text []byte) (e int64) {
	if len(text) < 2 {
		return 0
	}
	text = text[1:]
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		text = text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			break
		}
		e = min(10*e+int64(c-'0'), 2*MaxExponent)
	}
	if negative {
		return -e
	}
	return e
}

func bound(e int64) int64 { return max(-MaxExponent, min(e, MaxExponent)) }
