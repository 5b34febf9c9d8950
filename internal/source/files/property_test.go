package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestRandomOperations changes a directory like people and programs do, in any
// order and at any time. After a pause, and once everything is fixed, the state
// is the result of simply reading the directory.
func TestRandomOperations(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			d := newDisk(t)
			f := follow(t, d.source(Config{Rescan: -1}))
			newChaos(d, seed).run(f, 8, 40)
			f.awaitWell()
			noSpurious(t, f)
		})
	}
}

// noSpurious fails if a key has another revision but the same value.
func noSpurious(t *testing.T, f *follower) {
	t.Helper()
	commits := f.Commits()
	for i := 1; i < len(commits); i++ {
		before := commits[i-1].State
		for key, now := range commits[i].State {
			if was, ok := before[key]; ok && was.Value == now.Value && was.Revision != now.Revision {
				t.Errorf("%q is %v after it was %v, and did not change", key, now, was)
			}
		}
	}
}

// TestRandomOperationsWithoutHints is the same with scans only.
func TestRandomOperationsWithoutHints(t *testing.T) {
	d := newDisk(t)
	s := d.source(Config{})
	s.config.Rescan = 3 * time.Millisecond
	s.open = func() (*fsnotify.Watcher, error) { return nil, errors.New("none here") }
	newChaos(d, 100).run(follow(t, s), 6, 40)
}

// chaos changes a directory at random.
type chaos struct {
	disk
	*rand.Rand
	kinds int // of operations; links require another way of following
	count int
}

func newChaos(d disk, seed uint64) *chaos {
	const withoutLinks, all = 9, 12
	return &chaos{disk: d, Rand: rand.New(rand.NewPCG(seed, 0)), kinds: []int{all, withoutLinks}[seed%2]}
}

func (c *chaos) run(f *follower, rounds, operations int) {
	for round := range rounds {
		for range operations {
			c.operation()
		}
		c.mend(".")
		want := map[string]string{}
		c.plainly(".", ".", want)
		f.t.Logf("round %d: %d resources", round, len(want))
		f.awaitState(want)
	}
}

// dir is one of few, so that operations collide.
func (c *chaos) dir() string {
	return []string{"r0", "r1", "r0/s0", "r1/s1", "r0/s0/t"}[c.IntN(5)]
}

func (c *chaos) file() string {
	return fmt.Sprintf("%s/f%d.%s", c.dir(), c.IntN(4), []string{"json", "yaml", "txt"}[c.IntN(3)])
}

// value is JSON, and so YAML as well: a new one each time.
func (c *chaos) value() string {
	c.count++
	return fmt.Sprintf(`{"n":%d}`, c.count)
}

// operation does one thing. Impossible operations are skipped.
func (c *chaos) operation() {
	switch c.IntN(c.kinds) {
	case 0, 1:
		_ = os.MkdirAll(c.path(c.dir()), 0o755)
		_ = os.WriteFile(c.path(c.file()), []byte(c.value()), 0o644)
	case 2, 3:
		_ = c.replace(c.file(), c.value())
	case 4:
		_ = os.WriteFile(c.path(c.file()), []byte(`{"half`), 0o644)
	case 5:
		_ = os.Remove(c.path(c.file()))
	case 6:
		_ = os.RemoveAll(c.path(c.dir()))
	case 7:
		_ = os.Rename(c.path(c.file()), c.path(c.file()))
	case 8:
		_ = os.Rename(c.path(c.dir()), c.path(c.dir()))
	case 9:
		_ = os.MkdirAll(c.path("links"), 0o755)
		_ = os.Remove(c.path(c.linkName()))
		_ = os.Symlink("../"+c.file(), c.path(c.linkName()))
	case 10:
		_ = os.MkdirAll(c.path("links"), 0o755)
		_ = c.relink("../"+c.dir(), c.linkName())
	case 11:
		_ = os.Remove(c.path(c.linkName()))
	}
}

func (c *chaos) linkName() string { return fmt.Sprintf("links/l%d.json", c.IntN(3)) }

// mend removes invalid files, and the second of two files with one key: the
// result for these depends on the previous state.
func (c *chaos) mend(dir string) {
	entries, err := os.ReadDir(c.path(dir))
	c.must(err)
	for _, e := range entries {
		name := below(dir, e.Name())
		if target, err := os.Stat(c.path(name)); err != nil {
			c.remove(name) // a dangling link
		} else if target.IsDir() {
			if e.IsDir() {
				c.mend(name)
			}
		} else if text, err := os.ReadFile(c.path(name)); err != nil || strings.HasSuffix(string(text), "half") {
			c.remove(name)
		}
		if base, isYAML := strings.CutSuffix(name, ".yaml"); isYAML {
			if _, err := os.Stat(c.path(base + ".json")); err == nil {
				c.remove(name)
			}
		}
	}
	if dir == "." {
		c.mendLinks()
	}
}

// mendLinks removes links left dangling by mending.
func (c *chaos) mendLinks() {
	for i := range 3 {
		name := fmt.Sprintf("links/l%d.json", i)
		if _, err := os.Stat(c.path(name)); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(c.path(name))
		}
	}
}

// plainly reads the directory without the code under test.
func (c *chaos) plainly(dir, key string, into map[string]string) {
	entries, err := os.ReadDir(c.path(dir))
	c.must(err)
	for _, e := range entries {
		name, k := path.Join(dir, e.Name()), path.Join(key, e.Name())
		info, err := os.Stat(c.path(name))
		c.must(err)
		if info.IsDir() {
			c.plainly(name, k, into)
			continue
		}
		base, isJSON := strings.CutSuffix(k, ".json")
		base, isYAML := strings.CutSuffix(base, ".yaml")
		if isJSON || isYAML {
			text, err := os.ReadFile(c.path(name))
			c.must(err)
			into[base] = string(text)
		}
	}
}
