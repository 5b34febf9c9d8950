package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/suggest"
)

// declaredWatch is an entry of "watches" as far as others depend on it.
type declaredWatch struct {
	name     string       // of the entry
	source   string       // empty: it is a view
	viewOf   string       // empty: it has a source. Of a template, that of one watch
	labelsAt string       // for a view, those of the watch with a source that it leads to
	of       decode.Value // of view_of
	read     func(labelsAt string)
	plain    bool // it is not compressed, by its own entry
}

// lineage follows views to the watches that they are parts of.
//
// Static after Load.
type lineage struct {
	watches   map[string]declaredWatch // entries of "watches" without an error, by name
	templates []*Template              // those of them that are templates, in the order of the file
}

// find returns the entry that has the watch with a name.
func (l *lineage) find(name string) (declaredWatch, bool) {
	if w, declared := l.watches[name]; declared {
		return w, true
	}
	for _, t := range l.templates {
		if made, ok := t.fill(name); ok {
			w := l.watches[t.Name]
			w.viewOf = made.ViewOf
			return w, true
		}
	}
	return declaredWatch{}, false
}

// follow returns the entries from w to the watch with a source that w leads to. false: there is
// none, because the last entry is a view of a watch that does not exist, or of one of the
// entries before it. A path with the same template twice is refused too, whatever its values
// are, so that a path is never longer than the configuration.
func (l *lineage) follow(w declaredWatch) (path []declaredWatch, ok bool) {
	path = []declaredWatch{w}
	for w.viewOf != "" {
		if w, ok = l.find(w.viewOf); !ok {
			return path, false
		}
		again := place(path, w.name) < len(path)
		path = append(path, w)
		if again {
			return path, false
		}
	}
	return path, true
}

// place returns which of the entries is the first with a name; len(path): none is.
func place(path []declaredWatch, name string) int {
	for i, w := range path {
		if w.name == name {
			return i
		}
	}
	return len(path)
}

// setDefinition completes the sample of a template.
func (l *lineage) setDefinition(w Watch) {
	for _, t := range l.templates {
		if t.Name == w.Name {
			t.sample.Definition, t.sample.Grouping, t.sample.LabelsAt, t.sample.Compression = w.Definition, w.Grouping, w.LabelsAt, w.Compression
		}
	}
}

// rootOf returns the place of the labels in the watch with a source that a view leads to;
// false: there is none, which is reported here or at another entry.
func (d *decoder) rootOf(name string) (labelsAt string, ok bool) {
	path, ok := d.lineage.follow(d.watches[name])
	end := len(path) - 1
	first := place(path, path[end].name)
	switch {
	case ok:
		return path[end].labelsAt, true
	case first < end:
		d.reportCircle(path[first:end])
	default:
		d.reportMissing(path)
	}
	return "", false
}

// reportCircle reports a circle of views, once for all of them.
func (d *decoder) reportCircle(circle []declaredWatch) {
	first := slices.MinFunc(circle, func(a, b declaredWatch) int { return strings.Compare(a.name, b.name) })
	if slices.Contains(d.circles, first.name) {
		return
	}
	d.circles = append(d.circles, first.name)
	at := place(circle, first.name)
	var parts []string
	for _, w := range slices.Concat(circle[at:], circle[:at], circle[at:at+1]) {
		parts = append(parts, fmt.Sprintf("%s (line %d)", w.name, decode.Position(w.of.Node).Line))
	}
	d.Errorf(first.of, "a view of itself: %s", strings.Join(parts, " is of "))
}

// reportMissing reports that the last of several entries is a view of a watch that does not
// exist, unless another entry has the mistake.
func (d *decoder) reportMissing(path []declaredWatch) {
	first, last := path[0], path[len(path)-1]
	reportedThere := len(path) > 1 && last.viewOf == d.watches[last.name].viewOf
	if reportedThere || slices.Contains(d.named, last.viewOf) || d.hasWrongTemplate() {
		return
	}
	advice := suggest.Sentence(last.viewOf, slices.Collect(maps.Keys(d.watches)))
	if d.hasVariables(first.of) {
		d.Errorf(first.of, "there is no such watch; there are %s", strings.Join(slices.Sorted(maps.Keys(d.watches)), ", "))
		return
	}
	part := ""
	switch t := d.templatings[first.name]; {
	case len(path) > 1:
		part = fmt.Sprintf(", of which %q is a view", path[len(path)-2].viewOf)
	case t != nil:
		part = fmt.Sprintf(", of which %q would be a view", t.name.Render(t.sample))
	}
	d.Errorf(first.of, "there is no watch %q%s; %s", last.viewOf, part, advice)
}

// hasWrongTemplate reports whether a template has a mistake: it may be the one that is
// missing.
func (d *decoder) hasWrongTemplate() bool {
	return slices.ContainsFunc(d.named, func(name string) bool { return decode.IsName(name) && d.templatings[name] == nil })
}
