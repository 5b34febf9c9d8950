package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// scalar is the text of a value, as written and with the environment filled in.
// Errors show only what was written.
type scalar struct {
	value
	written  string
	expanded string
}

// text returns the text of a value of one of the kinds: text is always
// accepted, since ${NAME} may stand for anything.
func (d *decoder) text(v value, want string, allowed func(ast.Node) bool) (scalar, bool) {
	v, ok := d.resolve(v)
	if !ok {
		return scalar{}, false
	}
	s := scalar{value: v}
	switch n := v.node.(type) {
	case *ast.StringNode:
		if plain := n.Token.Type == token.StringType; plain && strings.Contains(n.Value, ": ") {
			d.errorf(v, "%q is one word for YAML; is a comma missing, or quotation marks?", n.Value)
			return s, false
		}
		s.written = n.Value
	case *ast.LiteralNode:
		s.written = n.Value.Value
	default:
		if allowed == nil || !allowed(v.node) {
			d.errorf(v, "want %s, not %s", want, kind(v.node))
			return scalar{}, false
		}
		s.written = v.node.GetToken().Value
	}
	var message string
	if s.expanded, message = expand(s.written, d.env.Getenv); message != "" {
		d.errorf(v, "%s", message)
		return scalar{}, false
	}
	return s, true
}

// wrong adds an error that shows what was written.
func (d *decoder) wrong(s scalar, want string) {
	written := s.written
	if !strings.Contains(written, "${") && looksLikeVariable(written) {
		want += "; a variable is written ${NAME}"
	}
	if len(written) > 80 {
		written = strings.ToValidUTF8(written[:80], "") + "…"
	}
	d.errorf(s.value, "%q: want %s", written, want)
}

// looksLikeVariable reports whether a text contains a shell variable.
func looksLikeVariable(text string) bool {
	_, after, found := strings.Cut(text, "$")
	return found && after != "" && validEnvName(after[:1])
}

// str reads text that is not empty.
func (d *decoder) str(into *string) field {
	return d.strThat("text (in quotation marks if it looks like a number)", func(s string) bool { return s != "" }, into)
}

// strThat reads text for which ok is true.
func (d *decoder) strThat(want string, ok func(string) bool, into *string) field {
	return func(v value) {
		s, read := d.text(v, want, nil)
		if !read {
			return
		}
		if !ok(s.expanded) {
			d.wrong(s, want)
			return
		}
		*into = s.expanded
	}
}

// boolean reads true or false.
func (d *decoder) boolean(into *bool) field {
	isBool := func(n ast.Node) bool { _, ok := n.(*ast.BoolNode); return ok }
	return func(v value) {
		s, ok := d.text(v, "true or false", isBool)
		if !ok {
			return
		}
		switch strings.ToLower(s.expanded) {
		case "true":
			*into = true
		case "false":
			*into = false
		default:
			d.wrong(s, "true or false")
		}
	}
}

// duration reads a number with a unit, more than zero.
func (d *decoder) duration(into *time.Duration) field {
	return d.durationFrom("a duration of more than zero, such as 500ms, 15s or 10m", 1, into)
}

// pulse reads a duration that is sent in milliseconds, or that a loop waits for.
func (d *decoder) pulse(into *time.Duration) field {
	return d.durationFrom("a duration of at least 1ms, such as 500ms, 15s or 10m", time.Millisecond, into)
}

// durationOrOff reads a number with a unit, where 0s turns something off: then
// it is negative.
func (d *decoder) durationOrOff(into *time.Duration) field {
	return d.offAtZero(d.durationFrom("a duration such as 500ms, 15s or 10m, or 0s for none", 0, into), into)
}

// offAtZero converts a zero that was read to Off.
func (d *decoder) offAtZero(read field, into *time.Duration) field {
	return func(v value) {
		errors := len(d.errs)
		read(v)
		if *into == 0 && len(d.errs) == errors {
			*into = Off
		}
	}
}

// durationAtLeast reads a number with a unit.
func (d *decoder) durationAtLeast(least time.Duration, into *time.Duration) field {
	return d.durationFrom("a duration of at least "+least.String(), least, into)
}

// longest is the longest duration. Times are counted in nanoseconds, which end in
// 2262, and several durations are multiplied, for jitter for instance.
const longest = 10 * 365 * 24 * time.Hour

func (d *decoder) durationFrom(want string, least time.Duration, into *time.Duration) field {
	return func(v value) {
		s, ok := d.text(v, want, isNumber)
		if !ok {
			return
		}
		parsed, err := time.ParseDuration(s.expanded)
		if err != nil || parsed < least {
			d.wrong(s, want)
			return
		}
		if parsed > longest {
			d.wrong(s, fmt.Sprintf("at most %.0fh, which is ten years", longest.Hours()))
			return
		}
		*into = parsed
	}
}

// count reads a whole number from 1.
func (d *decoder) count(into *int) field {
	const want = "a whole number of at least 1"
	return func(v value) {
		if n, ok := d.number(v, want, 1, math.MaxInt32, parseWhole); ok {
			*into = int(n)
		}
	}
}

// size reads a number of bytes from 1.
func (d *decoder) size(into *int64) field {
	return d.sizeFrom("a number of bytes of at least 1, such as 65536 or 64KiB", 1, into)
}

// sizeOrOff reads a number of bytes, where 0 turns something off: then it is
// negative.
func (d *decoder) sizeOrOff(into *int64) field {
	read := d.sizeFrom("a number of bytes such as 4096 or 4KiB, or 0 for none", 0, into)
	return func(v value) {
		errors := len(d.errs)
		if read(v); *into == 0 && len(d.errs) == errors {
			*into = -1
		}
	}
}

// ceiling reads how many bytes watches may hold. With less than a MiB, nothing
// could ever be loaded.
func (d *decoder) ceiling(into *int64) field {
	return d.sizeFrom("a number of bytes of at least 1MiB, such as 512MiB or 2GiB", 1<<20, into)
}

func (d *decoder) sizeFrom(want string, least int64, into *int64) field {
	return func(v value) {
		if n, ok := d.number(v, want, least, 1<<50, parseSize); ok {
			*into = n
		}
	}
}

func (d *decoder) number(v value, want string, least, most int64, parse func(string) (int64, bool)) (int64, bool) {
	s, ok := d.text(v, want, isNumber)
	if !ok {
		return 0, false
	}
	n, ok := parse(s.expanded)
	if !ok || n < least {
		d.wrong(s, want)
		return 0, false
	}
	if n > most {
		d.wrong(s, fmt.Sprintf("at most %d", most))
		return 0, false
	}
	return n, true
}

func isNumber(n ast.Node) bool {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return true
	}
	return false
}

// parseWhole reads a whole number; one that is too large is the largest.
func parseWhole(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

var sizeUnits = []struct {
	name  string
	shift uint
}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}

func parseSize(s string) (int64, bool) {
	var shift uint
	for _, u := range sizeUnits {
		if number, found := strings.CutSuffix(s, u.name); found {
			s, shift = strings.TrimSpace(number), u.shift
			break
		}
	}
	n, ok := parseWhole(s)
	switch {
	case n < 0:
		return n, ok
	case n > math.MaxInt64>>shift:
		return math.MaxInt64, ok
	}
	return n << shift, ok
}

// list reads a sequence of texts for which ok is true.
func (d *decoder) list(want string, ok func(string) bool, into *[]string) field {
	return func(v value) {
		v, resolved := d.resolve(v)
		if !resolved {
			return
		}
		seq, isList := v.node.(*ast.SequenceNode)
		if !isList {
			d.errorf(v, "want a list, not %s", kind(v.node))
			return
		}
		for i, n := range seq.Values {
			var s string
			errors := len(d.errs)
			d.strThat(want, ok, &s)(value{n, v.path + "[" + strconv.Itoa(i) + "]"})
			if len(d.errs) == errors {
				*into = append(*into, s)
			}
		}
	}
}
