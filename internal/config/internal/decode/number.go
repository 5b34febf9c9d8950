package decode

import (
	"fmt"
	"math"
	"time"
)

// longest is the longest duration. Times are in nanoseconds, which overflow in the year 2262,
// and some durations are multiplied, for instance for jitter.
const longest = 10 * 365 * 24 * time.Hour

// Off stands for a duration of 0s.
const Off time.Duration = -1

// readDuration reads a number with a unit, such as 1h30m.
func (d *Decoder) readDuration(v Value, t Tag, into *time.Duration) {
	want := t.WantDuration()
	s, ok := d.Text(v, want, IsNumber)
	if !ok {
		return
	}
	parsed, err := time.ParseDuration(s.Expanded)
	switch {
	case err != nil, int64(parsed) < t.Smallest():
		d.Wrong(s, want)
	case parsed > longest:
		d.Wrong(s, fmt.Sprintf("at most %.0fh, which is ten years", longest.Hours()))
	case parsed == 0:
		*into = Off
	case int64(parsed) < t.Least:
		d.Errorf(s.Value, "want %s", want)
	default:
		*into = parsed
	}
}

// mostBytes is the largest number of bytes.
const mostBytes = 1 << 50

// readSize reads a number of bytes.
func (d *Decoder) readSize(v Value, t Tag, into *int64) {
	n, ok := d.number(v, t.WantSize(), t.Smallest(), mostBytes, ParseSize)
	if !ok {
		return
	}
	if *into = n; n == 0 {
		*into = -1
	}
}

// readInt reads a whole number from 1.
func (d *Decoder) readInt(v Value, t Tag, into *int) {
	if t.Bytes {
		d.readIntSize(v, t, into)
		return
	}
	want := "a whole number of at least 1"
	if t.Off {
		want = "a whole number"
	}
	n, ok := d.number(v, want, t.Smallest(), math.MaxInt32, ParseWhole)
	if ok {
		*into = int(n)
	}
}

// readIntSize reads a number of bytes that fits into an int.
func (d *Decoder) readIntSize(v Value, t Tag, into *int) {
	var size int64
	if d.readSize(v, t, &size); size > math.MaxInt32 {
		d.Errorf(v, "want less than 2GiB%s", t.Why)
		return
	}
	*into = int(size)
}

func (d *Decoder) number(v Value, want string, least, most int64, parse func(string) (int64, bool)) (int64, bool) {
	s, ok := d.Text(v, want, IsNumber)
	if !ok {
		return 0, false
	}
	n, ok := parse(s.Expanded)
	if !ok || n < least {
		d.Wrong(s, want)
		return 0, false
	}
	if n > most {
		d.Wrong(s, fmt.Sprintf("at most %d", most))
		return 0, false
	}
	return n, true
}
