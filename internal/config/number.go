package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// longest is the longest duration. Times are counted in nanoseconds, which end in
// 2262, and several durations are multiplied, for jitter for instance.
const longest = 10 * 365 * 24 * time.Hour

// readDuration reads a number with a unit, such as 1h30m.
func (d *decoder) readDuration(v value, t tag, into *time.Duration) {
	want := wantDuration(t)
	s, ok := d.text(v, want, isNumber)
	if !ok {
		return
	}
	parsed, err := time.ParseDuration(s.expanded)
	switch {
	case err != nil, int64(parsed) < t.smallest():
		d.wrong(s, want)
	case parsed > longest:
		d.wrong(s, fmt.Sprintf("at most %.0fh, which is ten years", longest.Hours()))
	case parsed == 0:
		*into = Off
	case int64(parsed) < t.least:
		d.errorf(s.value, "want %s", want)
	default:
		*into = parsed
	}
}

// wantDuration has examples if the least duration is too small to be one.
func wantDuration(t tag) string {
	want := "a duration"
	switch {
	case t.min != "":
		want += " of at least " + t.min
	case !t.off:
		want += " of more than zero"
	}
	if t.least <= int64(time.Millisecond) {
		if want != "a duration" {
			want += ","
		}
		want += " such as 500ms, 15s or 10m"
	}
	if t.off {
		want += ", or 0s for none"
	}
	return want
}

// mostBytes is the most that a number of bytes can be.
const mostBytes = 1 << 50

// readSize reads a number of bytes.
func (d *decoder) readSize(v value, t tag, into *int64) {
	n, ok := d.number(v, wantSize(t), t.smallest(), mostBytes, parseSize)
	if !ok {
		return
	}
	if *into = n; n == 0 {
		*into = -1
	}
}

func wantSize(t tag) string {
	switch {
	case t.off:
		return "a number of bytes such as 4096 or 4KiB, or 0 for none"
	case t.min != "":
		return "a number of bytes of at least " + t.min + ", such as 512MiB or 2GiB"
	}
	return "a number of bytes of at least 1, such as 65536 or 64KiB"
}

// readInt reads a whole number from 1.
func (d *decoder) readInt(v value, t tag, into *int) {
	if t.bytes {
		d.readIntSize(v, t, into)
		return
	}
	n, ok := d.number(v, "a whole number of at least 1", 1, math.MaxInt32, parseWhole)
	if ok {
		*into = int(n)
	}
}

// readIntSize reads a number of bytes that fits into an int.
func (d *decoder) readIntSize(v value, t tag, into *int) {
	var size int64
	if d.readSize(v, t, &size); size > math.MaxInt32 {
		d.errorf(v, "want less than 2GiB%s", t.why)
		return
	}
	*into = int(size)
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
