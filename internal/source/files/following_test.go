package files

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestLastGoodValueStays breaks a file in many ways. Each time the other files
// are still followed, the reason names the location, and fixing the file clears
// the status.
func TestLastGoodValueStays(t *testing.T) {
	for _, c := range []struct {
		name, file, bad, reason string
	}{
		{"JSON cut off", "a.json", "{\n \"n\": [1,", "a.json:2:10: not JSON: unexpected end"},
		{"JSON with a slip", "a.json", "{\n  \"n\": 1,,\n}", `a.json:2:10: not JSON: invalid character ','`},
		{"two values", "a.json", "{} {}", "a.json:1:4: not JSON: invalid character '{'"},
		{"a key twice", "a.json", "{\n \"n\": 1, \"n\": 2}", `a.json:2:10: the key "n" stands here a second time; it is on line 2 already`},
		{"an empty file", "a.json", "", "a.json:1:1: the file is empty"},
		{"empty lines", "a.yaml", "\n\n", "a.yaml:1:1: the file is empty"},
		{"not UTF-8", "a.json", "{\"n\":\n \"é\xff\"}", "a.json:2:4: this is not UTF-8"},
		{"too large", "a.json", strings.Repeat(" ", 2000) + "1", "a.json: the file has 2001 bytes; max_value_bytes allows 1000"},
		{"YAML cut off", "a.yaml", "n: [1,\n", "a.yaml:1:4: not YAML: "},
		{"YAML with a slip", "a.yaml", "n: 1\n m: 2\n", "a.yaml:"},
		{"two documents", "a.yaml", "n: 1\n---\nn: 2\n", "a.yaml:3:1: a second document begins here"},
		{"blocks that were never written", "a.yaml", "\x00\x00\x00\x00", "a.yaml:1:1: a byte of value 0 stands here; want text"},
		{"larger than it looks", "a.yaml", "x: &x [" + strings.Repeat("aaaa, ", 100) + "]\ny: [*x, *x, *x]\n", "a.yaml:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDisk(t)
			d.write(c.file, `{"n":1}`)
			f := follow(t, d.source(Config{MaxValueBytes: 1000}))
			value := f.firstValue("a")
			d.write(c.file, c.bad)
			f.awaitWrong(c.reason)
			d.write("other.json", "2")
			f.awaitState(map[string]string{"a": value, "other": "2"})
			d.must(d.replace(c.file, `{"n":3}`))
			f.awaitState(map[string]string{"a": strings.Replace(value, "1", "3", 1), "other": "2"})
			f.awaitWell()
		})
	}
}

// firstValue waits for the only key.
func (f *follower) firstValue(key string) string {
	f.t.Helper()
	f.await(func() string {
		if len(f.State()) != 1 {
			return "no value of " + key
		}
		return ""
	})
	return f.values()[key]
}

// TestBrokenFromTheStart: the other files are served, and the missing one is
// reported from the start.
func TestBrokenFromTheStart(t *testing.T) {
	d := newDisk(t)
	d.write("bad.json", "{")
	d.write("good.json", "1")
	f := follow(t, d.source(Config{}))
	f.awaitState(map[string]string{"good": "1"})
	f.awaitWrong("bad.json:1:2: not JSON")
	d.remove("bad.json")
	f.awaitWell()
	f.awaitState(map[string]string{"good": "1"})
}

// TestBurstIsOneCommit: directories are made, filled and renamed meanwhile.
func TestBurstIsOneCommit(t *testing.T) {
	d := newDisk(t)
	w := watchByHand(t, d)
	want := map[string]string{}
	for i := range 1000 {
		d.write(fmt.Sprintf("d%d/e%d/f%d.json", i%7, i%13, i), fmt.Sprint(i))
		want[fmt.Sprintf("d%d/e%d/f%d", i%7, i%13, i)] = fmt.Sprint(i)
	}
	w.settle()
	w.want(2, want)
	for i := range 1000 {
		d.write(fmt.Sprintf("d%d/e%d/f%d.json", i%7, i%13, i), "0")
		want[fmt.Sprintf("d%d/e%d/f%d", i%7, i%13, i)] = "0"
	}
	w.settle()
	w.want(3, want)
}

// TestEndlessBurst: a burst that never ends is still published.
func TestEndlessBurst(t *testing.T) {
	d := newDisk(t)
	s := d.source(Config{})
	s.quiet, s.longest = time.Hour, 10*time.Millisecond
	f := follow(t, s)
	f.awaitState(map[string]string{})
	for i := range 3 {
		d.write("a.json", fmt.Sprint(i))
		f.awaitState(map[string]string{"a": fmt.Sprint(i)})
	}
}

func TestTwoFilesOfOneKey(t *testing.T) {
	d := newDisk(t)
	d.write("x/a.yaml", "yaml: 1")
	f := follow(t, d.source(Config{}))
	f.awaitState(map[string]string{"x/a": `{"yaml":1}`})
	d.write("x/a.json", `{"json":1}`)
	f.awaitWrong(`x/a.json: has the key "x/a" of x/a.yaml, which stays`)
	d.write("x/a.json", `{"json":2}`)
	d.write("b.json", "1") // seen, so that the previous one was seen
	f.awaitState(map[string]string{"x/a": `{"yaml":1}`, "b": "1"})
	d.remove("x/a.yaml")
	f.awaitState(map[string]string{"x/a": `{"json":2}`, "b": "1"})
	f.awaitWell()
}

// TestTwoFilesOfOneKeyAtStart: replicas that start agree on which one is served.
func TestTwoFilesOfOneKeyAtStart(t *testing.T) {
	d := newDisk(t)
	d.write("a.yml", "1")
	d.write("a.yaml", "2")
	d.write("a.json", "3")
	f := follow(t, d.source(Config{}))
	f.awaitState(map[string]string{"a": "3"})
	f.awaitWrong("a.yaml: has the key", "a.yml: has the key")
}

func TestAllTogetherTooLarge(t *testing.T) {
	d := newDisk(t)
	s := d.source(Config{MaxBytes: 30})
	f := follow(t, s)
	d.write("a.json", `"1234567890"`) // 13 with its key
	f.awaitState(map[string]string{"a": `"1234567890"`})
	d.write("b.json", `"123456789012345"`)
	f.awaitWrong("b.json: with it, all files have 31 bytes; max_bytes allows 30")
	d.write("a.json", `1`)
	d.write("b.json", `"12345678901234"`)
	f.awaitState(map[string]string{"a": "1", "b": `"12345678901234"`})
	f.awaitWell()
}

func TestDirectories(t *testing.T) {
	d := newDisk(t)
	d.write("a/b/c/d.json", "1")
	f := follow(t, d.source(Config{}))
	f.awaitState(map[string]string{"a/b/c/d": "1"})
	d.rename("a", "z")
	f.awaitState(map[string]string{"z/b/c/d": "1"})
	d.write("z/b/c/d.json", "2") // under its new name
	f.awaitState(map[string]string{"z/b/c/d": "2"})
	d.write("a/b/c/d.json", "3") // a new one, where the old one was
	f.awaitState(map[string]string{"z/b/c/d": "2", "a/b/c/d": "3"})
	d.remove("z/b")
	d.write("z/b/c/e.json", "4") // deleted and recreated
	f.awaitState(map[string]string{"z/b/c/e": "4", "a/b/c/d": "3"})
	d.write("z/b/c/e.json", "5")
	f.awaitState(map[string]string{"z/b/c/e": "5", "a/b/c/d": "3"})
	d.write("looks/like/a.json/file.json", "6")
	f.awaitState(map[string]string{"z/b/c/e": "5", "a/b/c/d": "3", "looks/like/a.json/file": "6"})
	d.remove("looks/like/a.json")
	d.write("looks/like/a.json", "7")
	f.awaitState(map[string]string{"z/b/c/e": "5", "a/b/c/d": "3", "looks/like/a": "7"})
	f.neverWrong()
}

// TestDirectoryMovedInAndOut: from elsewhere, with content.
func TestDirectoryMovedInAndOut(t *testing.T) {
	d := newDisk(t)
	d.write("../elsewhere/x/a.json", "1")
	f := follow(t, d.source(Config{}))
	f.awaitState(map[string]string{})
	d.rename("../elsewhere", "here")
	f.awaitState(map[string]string{"here/x/a": "1"})
	d.rename("here", "../elsewhere")
	f.awaitState(map[string]string{})
	d.write("../elsewhere/x/a.json", "2") // outside, ignored
	d.write("b.json", "3")
	f.awaitState(map[string]string{"b": "3"})
}

func TestNamesOfAllKinds(t *testing.T) {
	d := newDisk(t)
	for _, name := range []string{
		"a\xffb.json", "ключ/鍵.yaml", "with space .json", "UPPER.JSON", "dots.in.name.yml", "-.json", "new\nline.json", `back\slash.json`,
		".hidden.json", ".git/config.json", "#a.json#", "#a.json", "a.json~", "a.txt", "json", "4913", ".json", "x.json/.json",
	} {
		d.write(name, "1")
	}
	f := follow(t, d.source(Config{}))
	f.awaitState(map[string]string{
		"a\xffb": "1", "ключ/鍵": "1", "with space ": "1", "UPPER": "1", "dots.in.name": "1", "-": "1", "new\nline": "1", `back\slash`: "1",
	})
	f.neverWrong()
}

// TestUnchangedContentIsNoEvent: times and permissions are not content.
func TestUnchangedContentIsNoEvent(t *testing.T) {
	d := newDisk(t)
	d.write("a.json", "1")
	f := follow(t, d.source(Config{}))
	f.awaitState(map[string]string{"a": "1"})
	d.must(os.Chtimes(d.path("a.json"), time.Now(), time.Unix(1, 0)))
	d.must(os.Chmod(d.path("a.json"), 0o600))
	d.must(d.replace("a.json", "1"))
	d.write("b.json", "2")
	f.awaitState(map[string]string{"a": "1", "b": "2"})
	if before, after := f.Commits()[0].State["a"], f.State()["a"]; before != after {
		t.Errorf("a is %v after it was %v, want no change", after, before)
	}
}

// TestChangeThatLooksLikeNone: same size, and the time is set back.
func TestChangeThatLooksLikeNone(t *testing.T) {
	d := newDisk(t)
	old := time.Now().Add(-time.Hour)
	d.write("a.json", "1")
	d.must(os.Chtimes(d.path("a.json"), old, old))
	s := d.source(Config{})
	f := follow(t, s)
	f.awaitState(map[string]string{"a": "1"})
	f.stop()
	d.write("a.json", "2")
	d.must(os.Chtimes(d.path("a.json"), old, old))
	f = resume(t, s, f)
	f.awaitState(map[string]string{"a": "2"})
}

// TestTimesOfFiles checks that a change has the time at which its file was written, or moved
// into its place, and that a deletion and a snapshot have none.
func TestTimesOfFiles(t *testing.T) {
	d := newDisk(t)
	d.write("a.json", "1")
	d.write("b.json", "1")
	f := follow(t, d.source(Config{}))
	f.awaitState(map[string]string{"a": "1", "b": "1"})
	began := time.Now().Add(-time.Second) // clocks of file systems tick
	d.must(d.replace("a.json", "2"))
	f.awaitState(map[string]string{"a": "2", "b": "1"})
	d.must(os.Remove(d.path("b.json")))
	f.awaitState(map[string]string{"a": "2"})
	commits := f.Commits()
	if len(commits) != 3 {
		t.Fatalf("%d commits, want 3", len(commits))
	}
	if !commits[0].Made.IsZero() || !commits[2].Made.IsZero() {
		t.Errorf("the snapshot was made at %v, the deletion at %v: want neither", commits[0].Made, commits[2].Made)
	}
	if made := commits[1].Made; made.Before(began) || made.After(time.Now().Add(time.Second)) {
		t.Errorf("the change was made at %v, want the time of the file, after %v", made, began)
	}
}
