package files

import (
	"fmt"
	"slices"
)

// tree is the content of the directory at the last scan. Owned by Watch.
type tree struct {
	maxBytes int64

	files   map[string]*file
	claims  map[string][]*file // by key; the first is served
	broken  map[*file]struct{} // that have a problem, or may not be served
	changed map[string]int64   // keys whose value may have changed since it was last requested, and when their files did; 0: not known
	bytes   int64              // of all keys and values
	scan    uint64             // number of the current scan
}

// file is one file, with the last value that could be read from it.
type file struct {
	name    string
	key     string
	stamp   stamp
	sure    bool
	value   []byte // nil: it never had one
	problem error  // why value is not the present content of the file
	scan    uint64 // the last scan that saw it
}

func newTree(maxBytes int64) *tree {
	return &tree{
		maxBytes: maxBytes,
		files:    map[string]*file{},
		claims:   map[string][]*file{},
		broken:   map[*file]struct{}{},
		changed:  map[string]int64{},
	}
}

// put records the content of a file.
func (t *tree) put(name string, c content) {
	f := t.files[name]
	if f == nil {
		f = &file{name: name, key: keyOf(name)}
		t.add(f)
	}
	f.scan, f.stamp, f.sure, f.problem = t.scan, c.stamp, c.sure, c.err
	if c.err == nil {
		f.problem = t.setValue(f, c.value)
	}
	t.changed[f.key] = f.stamp.latest()
	t.judge(f)
}

func (t *tree) add(f *file) {
	t.files[f.name] = f
	t.claims[f.key] = append(t.claims[f.key], f)
	t.bytes += int64(len(f.key))
}

// setValue keeps the old value if there is no room for the new one.
func (t *tree) setValue(f *file, value []byte) error {
	total := t.bytes + int64(len(value)) - int64(len(f.value))
	if total > t.maxBytes && len(value) > len(f.value) {
		f.sure = false // there may be room the next time
		return fmt.Errorf("with it, all files have %d bytes; max_bytes allows %d", total, t.maxBytes)
	}
	t.bytes, f.value = total, value
	return nil
}

// remove removes a file. The next one with its key takes its place.
func (t *tree) remove(name string) {
	f := t.files[name]
	if f == nil {
		return
	}
	delete(t.files, name)
	delete(t.broken, f)
	t.bytes -= int64(len(f.key) + len(f.value))
	t.changed[f.key] = 0
	rest := slices.DeleteFunc(t.claims[f.key], func(other *file) bool { return other == f })
	t.claims[f.key] = rest
	if len(rest) == 0 {
		delete(t.claims, f.key)
		return
	}
	t.judge(rest[0])
}

// judge records whether a file is to be reported.
func (t *tree) judge(f *file) {
	if f.problem != nil || t.claims[f.key][0] != f {
		t.broken[f] = struct{}{}
		return
	}
	delete(t.broken, f)
}

// served returns the value of a key; nil: there is none.
func (t *tree) served(key string) []byte {
	if claims := t.claims[key]; len(claims) > 0 {
		return claims[0].value
	}
	return nil
}

// problems returns the problems, by the name of the file.
func (t *tree) problems() map[string]error {
	out := make(map[string]error, len(t.broken))
	for f := range t.broken {
		out[f.name] = f.problem
		if first := t.claims[f.key][0]; first != f {
			out[f.name] = fmt.Errorf("has the key %q of %s, which stays", f.key, first.name)
		}
	}
	return out
}

// touchedSince reports whether a file must be read again to know its content.
func (t *tree) touchedSince(name string, s stamp) bool {
	f := t.files[name]
	return f == nil || !f.sure || f.stamp != s
}

// saw records that a file still exists.
func (t *tree) saw(name string) {
	if f := t.files[name]; f != nil {
		f.scan = t.scan
	}
}

// keep records that the contents of an unreadable directory, or the target of a
// link, are assumed to still exist.
func (t *tree) keep(name string) {
	for _, f := range t.files {
		if within(f.name, name) {
			f.scan = t.scan
		}
	}
}

// sweep removes the files that the scan did not see.
func (t *tree) sweep() {
	for name, f := range t.files {
		if f.scan != t.scan {
			t.remove(name)
		}
	}
}
