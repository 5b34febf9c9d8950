package files

import (
	"cmp"
	"path/filepath"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/stream"
)

const (
	// DefaultMaxValueBytes is the size of the largest file, and of the largest
	// value.
	DefaultMaxValueBytes = 1 << 20
	// DefaultMaxBytes is the size of all keys and values together.
	DefaultMaxBytes = 256 << 20
	// DefaultRescan is often enough to find changes without hints, and
	// rare enough to cost nothing.
	DefaultRescan = time.Minute
	// MinRescan keeps scans from following one another without a pause.
	MinRescan = time.Second
)

// Config specifies which directory is followed, and how.
type Config struct {
	// Dir is the directory. A relative one starts at the working directory at
	// the time of New. Required.
	Dir string `yaml:"dir,required,is=directory"`
	// MaxValueBytes is the maximum size of a file, and of its value too, which
	// differs for YAML. 0: DefaultMaxValueBytes.
	MaxValueBytes int64 `yaml:"max_value_bytes"`
	// MaxBytes is the maximum size of all keys and values together. 0:
	// DefaultMaxBytes.
	MaxBytes int64 `yaml:"max_bytes"`
	// Rescan is the time between two scans of the whole directory, at least
	// MinRescan. 0: DefaultRescan; negative: none but those that are due
	// anyway.
	Rescan time.Duration `yaml:"rescan,min=1s,off"`
}

// withDefaults returns c with defaults filled in, or a *stream.InvalidError.
func (c Config) withDefaults() (Config, error) {
	c.MaxValueBytes = cmp.Or(c.MaxValueBytes, DefaultMaxValueBytes)
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	c.Rescan = cmp.Or(c.Rescan, DefaultRescan)
	switch {
	case c.Dir == "":
		return c, &stream.InvalidError{What: "dir", Want: "the name of a directory"}
	case c.MaxValueBytes < 0:
		return c, &stream.InvalidError{What: "max_value_bytes", Got: strconv.FormatInt(c.MaxValueBytes, 10), Want: "at least 1"}
	case c.MaxBytes < 0:
		return c, &stream.InvalidError{What: "max_bytes", Got: strconv.FormatInt(c.MaxBytes, 10), Want: "at least 1"}
	case 0 < c.Rescan && c.Rescan < MinRescan:
		return c, &stream.InvalidError{What: "rescan", Got: c.Rescan.String(), Want: "at least " + MinRescan.String()}
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, err
	}
	c.Dir = dir
	return c, nil
}
