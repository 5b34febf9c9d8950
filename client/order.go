package client

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Order sorts resources as a server sorts those of a window: a stream sends them in no order. The zero value sorts by key.
//
// Static after ParseOrder.
type Order struct{ columns []column }

// column is one member by which resources are sorted.
type column struct {
	path       []string
	descending bool
}

// ParseOrder reads an order as View.Order has it, such as -cpu_percent,name.
func ParseOrder(text string) (Order, error) {
	var o Order
	for rest, more := text, true; more; {
		from := strings.TrimLeft(rest, " ")
		c, behind, at, err := cutColumn(from)
		if err == nil && slices.ContainsFunc(o.columns, func(known column) bool { return slices.Equal(known.path, c.path) }) {
			at, err = from, fmt.Errorf("the path %s is there twice", strings.Join(c.path, "."))
		}
		if err != nil {
			return Order{}, fmt.Errorf("order %.100q, at %.20q: %w", text, at, err)
		}
		o.columns = append(o.columns, c)
		rest, more = strings.CutPrefix(behind, ",")
	}
	return o, nil
}

var (
	errSign      = errors.New("want one minus where the order descends; a name with a sign in front is in double quotes")
	errDirection = errors.New("want a minus before a path that descends, and nothing before one that ascends")
)

// cutColumn reads a path with its direction. It returns what is behind it, a comma or nothing, or with an error where that is.
func cutColumn(text string) (c column, behind, at string, err error) {
	rest, descending := strings.CutPrefix(text, "-")
	c.descending = descending
	if rest = strings.TrimLeft(rest, " "); strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		return column{}, "", rest, errSign
	}
	for again := true; again; {
		rest = strings.TrimLeft(rest, " ")
		name, after, err := cutName(rest)
		if err != nil {
			return column{}, "", rest, err
		}
		c.path = append(c.path, name)
		next := strings.TrimLeft(after, " ")
		word := rest[:len(rest)-len(after)]
		if i := strings.LastIndexByte(word, ':'); i >= 0 && isDirection(word[i+1:]) && !strings.HasPrefix(next, ".") {
			return column{}, "", rest[i:], errDirection
		}
		rest, again = strings.CutPrefix(next, ".")
	}
	if rest == "" || rest[0] == ',' {
		return c, rest, "", nil
	}
	if word, _, _ := strings.Cut(rest, ","); isDirection(strings.TrimRight(word, " ")) {
		return column{}, "", rest, errDirection
	}
	return column{}, "", rest, errors.New("want a comma or a dot")
}

func isDirection(word string) bool {
	return strings.EqualFold(word, "asc") || strings.EqualFold(word, "desc")
}

// cutName reads a name, which may be in double quotes, and returns what is behind it.
func cutName(text string) (name, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		d := json.NewDecoder(strings.NewReader(text))
		if err := d.Decode(&name); err != nil {
			return "", "", fmt.Errorf("want a name in double quotes, as in JSON")
		}
		return name, text[d.InputOffset():], nil
	}
	n := strings.IndexFunc(text, func(r rune) bool {
		return strings.ContainsRune(`.,"'[]\`, r) || unicode.IsSpace(r) || unicode.IsControl(r)
	})
	if n < 0 {
		n = len(text)
	}
	if n == 0 {
		return "", "", fmt.Errorf("want a name")
	}
	return text[:n], text[n:], nil
}

// Compare compares two resources: negative, if a comes before b. Where many are compared, Key costs less.
func (o Order) Compare(a, b Resource) int { return bytes.Compare(o.Key(a), o.Key(b)) }

// The kinds of values, in their order. The inverse of none is another one, or absent.
const (
	kindNull = 1 + iota
	kindFalse
	kindTrue
	kindNegative
	kindZero
	kindPositive
	kindText
	kindOther
	kindAbsent = 0xff // also in a descending order
)

// What of a value counts.
const (
	maxOrderText     = 256     // bytes of a text, whole code points
	maxOrderDigits   = 128     // significant digits of a number
	maxOrderExponent = 1 << 40 // of a number
)

// Key returns the sort key of a resource: bytes that compare with those of others as the resources do.
func (o Order) Key(r Resource) []byte {
	var key []byte
	for _, c := range o.columns {
		value, has := memberOf(r, c.path)
		if !has {
			key = append(key, kindAbsent)
			continue
		}
		from := len(key)
		key = appendOrdered(key, value)
		if c.descending {
			invert(key[from:])
		}
	}
	return append(key, r.rawKey()...)
}

// memberOf returns the member at a path of the value of a resource; false: it is absent.
func memberOf(r Resource, path []string) (json.RawMessage, bool) {
	value := r.Value
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return nil, false
		}
		member, has := members[name]
		if !has {
			return nil, false
		}
		value = member
	}
	return value, true
}

// appendOrdered appends the sort key of a value. None is the beginning of another one.
func appendOrdered(key []byte, value json.RawMessage) []byte {
	switch c := append(value[:len(value):len(value)], 0)[0]; {
	case c == 'n':
		return append(key, kindNull)
	case c == 'f':
		return append(key, kindFalse)
	case c == 't':
		return append(key, kindTrue)
	case c == '"':
		return appendText(append(key, kindText), value)
	case c == '-' || '0' <= c && c <= '9':
		return appendNumber(key, string(value))
	}
	return append(key, kindOther)
}

// appendText appends the beginning of a text. A zero byte is followed by 255, and the text by 0 and 1, so that a text comes
// before those that begin with it.
func appendText(key []byte, value json.RawMessage) []byte {
	var text string
	_ = json.Unmarshal(value, &text) // it was read as JSON
	if n := maxOrderText; len(text) > n {
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	return append(append(key, strings.ReplaceAll(text, "\x00", "\x00\xff")...), 0, 1)
}

// appendNumber appends a number: its kind, the exponent of 0.d₀d₁d₂… × 10ⁿ, and its digits, which are inverted if it is negative.
func appendNumber(key []byte, text string) []byte {
	text, negative := strings.CutPrefix(text, "-")
	mantissa, power := text, ""
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa, power = text[:at], text[at+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent := int64(len(whole) - (len(whole+fraction) - len(digits)))
	if len(digits) > maxOrderDigits {
		digits = digits[:maxOrderDigits]
	}
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return append(key, kindZero)
	}
	e, _ := strconv.ParseInt(power, 10, 64) // beyond its range it is the largest or the smallest; 0 if there is none
	exponent = max(-maxOrderExponent, min(exponent+max(-2*maxOrderExponent, min(e, 2*maxOrderExponent)), maxOrderExponent))
	kind := byte(kindPositive)
	if negative {
		kind = kindNegative
	}
	key = append(key, kind)
	from := len(key)
	key = binary.BigEndian.AppendUint64(key, uint64(exponent+maxOrderExponent))
	key = append(append(key, digits...), 0)
	if negative {
		invert(key[from:])
	}
	return key
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}
