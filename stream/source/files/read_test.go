package files

import (
	"os"
	"strings"
	"testing"
)

// TestReadGrowingFile: the size is outdated.
func TestReadGrowingFile(t *testing.T) {
	d := newDisk(t)
	for _, c := range []struct {
		before, after int
		limit         int64
		err           string
	}{
		{10, 10, 100, ""},
		{0, 0, 100, ""},
		{10, 5, 100, ""},
		{10, 11, 100, ""},
		{10, 90, 100, ""},
		{10, 100, 100, ""},
		{10, 101, 100, "the file has 101 bytes; max_value_bytes allows 100"},
		{10, 5000, 100, "max_value_bytes allows 100"},
		{99, 100, 100, ""},
		{100, 101, 100, "the file has 101 bytes; max_value_bytes allows 100"},
		{101, 10, 100, "the file has 101 bytes; max_value_bytes allows 100"},
	} {
		d.write("a", strings.Repeat("x", c.before))
		f, err := os.Open(d.path("a"))
		d.must(err)
		info, err := f.Stat()
		d.must(err)
		d.write("a", strings.Repeat("x", c.after))
		text, err := textOf(f, info, c.limit)
		d.must(f.Close())
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: got %d bytes, error %v", c, len(text), err)
			}
			continue
		}
		if err != nil || len(text) != c.after {
			t.Errorf("%+v: got %d bytes, error %v", c, len(text), err)
		}
	}
}
