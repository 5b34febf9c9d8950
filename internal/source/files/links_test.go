package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
)

// TestLinks: the target of a link appears under the name of the link, if it is
// within the directory.
func TestLinks(t *testing.T) {
	for _, c := range []struct {
		name  string
		make  func(d disk)
		want  map[string]string
		wrong string // a part of the status; empty: nothing is wrong
	}{
		{"to a file", func(d disk) { d.write("x/a.json", "1"); d.link("x/a.json", "b.json") },
			map[string]string{"x/a": "1", "b": "1"}, ""},
		{"up and down again", func(d disk) { d.write("x/a.json", "1"); d.link("../x/a.json", "y/b.json") },
			map[string]string{"x/a": "1", "y/b": "1"}, ""},
		{"by way of a link", func(d disk) { d.write("x/a.json", "1"); d.link("c.json", "b.json"); d.link("x/a.json", "c.json") },
			map[string]string{"x/a": "1", "b": "1", "c": "1"}, ""},
		{"to a directory", func(d disk) { d.write("x/y/a.json", "1"); d.link("x", "z") },
			map[string]string{"x/y/a": "1", "z/y/a": "1"}, ""},
		{"into what is hidden", func(d disk) { d.write(".real/a.json", "1"); d.link(".real/a.json", "b.json") },
			map[string]string{"b": "1"}, ""},
		{"of another format by name", func(d disk) { d.write("data/a.txt", "n: 1"); d.link("data/a.txt", "b.yaml") },
			map[string]string{"b": `{"n":1}`}, ""},
		{"to what is not looked at", func(d disk) { d.write("a.txt", "x"); d.link("a.txt", "b.txt") },
			map[string]string{}, ""},
		{"out", func(d disk) { d.write("../secret.json", "1"); d.link("../secret.json", "a.json") },
			map[string]string{}, "a.json: the link leads out of the directory"},
		{"out by a detour", func(d disk) { d.write("../secret.json", "1"); d.link("x/../../secret.json", "a.json"); d.mkdir("x") },
			map[string]string{}, "a.json: the link leads out of the directory"},
		{"out and in again", func(d disk) { d.write("a.json", "1"); d.link("../resources/a.json", "b.json") },
			map[string]string{"a": "1"}, "b.json: the link leads out of the directory"},
		{"directory out", func(d disk) { d.write("../secret/a.json", "1"); d.link("../secret", "x") },
			map[string]string{}, "x: the link leads out of the directory"},
		{"absolute", func(d disk) { d.write("a.json", "1"); d.link(d.path("a.json"), "b.json") },
			map[string]string{"a": "1"}, "want a target relative to the link"},
		{"nowhere", func(d disk) { d.link("gone.json", "a.json") },
			map[string]string{}, "a.json: the link leads nowhere: there is no gone.json"},
		{"to itself", func(d disk) { d.link("a.json", "a.json") },
			map[string]string{}, "a.json: the link leads to itself"},
		{"round and round", func(d disk) { d.link("b", "a"); d.link("a", "b") },
			map[string]string{}, "a: the link leads to itself; b: the link leads to itself"},
		{"up to where it is", func(d disk) { d.write("x/a.json", "1"); d.link("..", "x/up") },
			map[string]string{"x/a": "1"}, "x/up: the link leads back up to ."},
		{"to where it is", func(d disk) { d.write("x/a.json", "1"); d.link(".", "x/here") },
			map[string]string{"x/a": "1"}, "x/here: the link leads back up to x"},
		{"into one another", func(d disk) { d.write("x/a.json", "1"); d.link("../y", "x/y"); d.link("../x", "y/x") },
			map[string]string{"x/a": "1", "y/x/a": "1"}, "x/y/x: the link leads back up to x, and so without end; y/x/y: the link leads back up to y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDisk(t)
			c.make(d)
			f := follow(t, d.source(Config{}))
			f.awaitState(c.want)
			if c.wrong != "" {
				f.awaitWrong(c.wrong)
				return
			}
			f.neverWrong()
		})
	}
}

// TestLinksThatChange: the link changes, a directory on the way, or the target.
func TestLinksThatChange(t *testing.T) {
	d := newDisk(t)
	d.write(".one/a.json", "1")
	d.write(".two/a.json", "2")
	f := follow(t, d.source(Config{}))
	f.awaitState(map[string]string{})
	d.link(".one", ".current")
	d.link(".current/a.json", "b.json")
	f.awaitState(map[string]string{"b": "1"})
	d.write(".one/a.json", "10") // the target
	f.awaitState(map[string]string{"b": "10"})
	d.must(d.relink(".two", ".current")) // on the way
	f.awaitState(map[string]string{"b": "2"})
	d.write(".two/a.json", "20")
	f.awaitState(map[string]string{"b": "20"})
	d.must(d.relink(".one/a.json", "b.json")) // the link
	f.awaitState(map[string]string{"b": "10"})
	f.neverWrong()
	d.remove(".one")
	f.awaitWrong("b.json: the link leads nowhere")
	f.awaitState(map[string]string{"b": "10"}) // the last good value
	d.write(".one/a.json", "11")
	f.awaitWell()
	f.awaitState(map[string]string{"b": "11"})
	d.remove("b.json")
	f.awaitState(map[string]string{})
}

// TestLinkIsMovedOutside: the last good values of its former target are kept.
func TestLinkIsMovedOutside(t *testing.T) {
	d := newDisk(t)
	d.write("../secret/a.json", `"secret"`)
	d.write(".in/a.json", "1")
	d.link(".in", "x")
	f := follow(t, d.source(Config{}))
	f.awaitState(map[string]string{"x/a": "1"})
	d.must(d.relink("../secret", "x"))
	f.awaitWrong("x: the link leads out of the directory")
	d.must(d.relink(".in", "x"))
	f.awaitWell()
	for _, c := range f.Commits() {
		if v := c.State["x/a"].Value; v != "1" {
			t.Errorf("x/a was %q, want 1 for ever", v)
		}
	}
}

// configMap is a Kubernetes volume, written in the way of the kubelet: the
// files are links through ..data, which is moved to a new directory.
type configMap struct {
	disk
	count int
}

func (c *configMap) update(files map[string]string) error {
	c.count++
	next := fmt.Sprintf("..2026_11_20_00_00_00.%09d", c.count)
	for name, text := range files {
		c.write(next+"/"+name, text)
	}
	before, err := os.Readlink(c.path("..data"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := c.relink(next, "..data"); err != nil {
		return err
	}
	for name := range files {
		if err := os.Symlink("..data/"+name, c.path(name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if before == "" {
		return nil
	}
	return c.removeStale(before, files)
}

// removeStale removes the links to deleted files, and the previous directory.
func (c *configMap) removeStale(before string, files map[string]string) error {
	old, err := os.ReadDir(c.path(before))
	if err != nil {
		return err
	}
	for _, e := range old {
		if _, stays := files[e.Name()]; !stays {
			c.remove(e.Name())
		}
	}
	return os.RemoveAll(c.path(before))
}

// TestConfigMap: each update is one transaction, and no problem is ever reported.
func TestConfigMap(t *testing.T) {
	c := &configMap{disk: newDisk(t)}
	w := watchByHand(t, c.disk)
	for n := range 4 {
		text := fmt.Sprint(n)
		c.must(c.update(map[string]string{"a.json": text, "b.yaml": text}))
		w.settle()
		w.want(2+n, map[string]string{"a": text, "b": text})
	}
	c.must(c.update(map[string]string{"b.yaml": "9"}))
	w.settle()
	w.want(6, map[string]string{"b": "9"})
}
