package order

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/decimal"
)

// What of a value counts. So a sort key has a bounded number of bytes.
const (
	MaxText   = 256               // bytes of a text, whole code points
	MaxDigits = decimal.MaxDigits // significant digits of a number
	// MaxExponent is the largest exponent of ten of a number. Numbers beyond it compare by their
	// digits alone.
	MaxExponent = decimal.MaxExponent
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
	d := decimal.Scan(text)
	if d.N == 0 {
		return append(dst, isZero)
	}
	kind := byte(isPositive)
	if d.Negative {
		kind = isNegative
	}
	dst = append(dst, kind)
	from := len(dst)
	dst = appendExponent(dst, d.Exponent)
	for i := 0; i < d.N; i += 2 {
		dst = append(dst, 1+10*d.Digits[i]+d.Digits[i+1])
	}
	dst = append(dst, 0)
	if d.Negative {
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
