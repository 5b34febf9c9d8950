package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream"
)

// sources reads the section, and records the type of every source.
func (d *decoder) sources(v value, into *[]Source) {
	entries, _ := d.entries(v)
	for _, e := range entries {
		s := Source{Name: e.name}
		if d.name(e) && d.source(&s, e) {
			*into = append(*into, s)
		}
		d.declared[e.name] = s.Type
	}
}

// name reports a key that cannot be the name of a source or a watch.
func (d *decoder) name(e entry) bool {
	if stream.CheckWatchName(e.name) == nil {
		return true
	}
	d.errorf(value{node: e.key}, "%q: want %s", e.name, texts["watch"].want)
	return false
}

// source reads one source, and reports whether it has a type of this build.
// The keys of other types are not checked.
func (d *decoder) source(s *Source, e entry) bool {
	sections := s.sections()
	var types []string
	for t := range sections {
		types = append(types, string(t))
	}
	entries, typ, ok := d.leading(e, "type", text{want: "the name of a source type"}, suggest.Sentence("", types))
	if !ok || !d.checkWord(typ, "this build has no source type", types) {
		return false
	}
	s.Type = SourceType(typ.expanded)
	section := sections[s.Type]
	keys := keysOf(section)
	for i := range keys {
		keys[i].advice = fmt.Sprintf(", which a source of type %s must have", s.Type)
	}
	d.fill(section, e.value, entries, append(keys, keysOf(s)...))
	return true
}

// leading returns the entries of a source or a watch, and the text of the key that
// determines the meaning of the others. false: an error was added.
func (d *decoder) leading(e entry, key string, kind text, advice string) (entries []entry, lead scalar, ok bool) {
	errors := len(d.errs)
	entries, _ = d.entries(e.value)
	for _, e := range entries {
		if e.name == key {
			lead, ok = d.textOf(e.value, kind)
			return entries, lead, ok
		}
	}
	for _, other := range entries {
		if suggest.Nearest(other.name, []string{key}) != "" {
			d.unknownKey(other, e.path, []string{key})
			return nil, scalar{}, false
		}
	}
	if len(d.errs) == errors {
		d.errorf(e.atKey(), "%s is missing; %s", key, advice)
	}
	return nil, scalar{}, false
}

func (d *decoder) watches(v value, into *[]Watch) {
	entries, _ := d.entries(v)
	for _, e := range entries {
		w := Watch{Name: e.name, Prime: true}
		d.name(e)
		d.watch(&w, e)
		*into = append(*into, w)
	}
}

// watch reads one watch, according to the type of its source.
func (d *decoder) watch(w *Watch, e entry) {
	kind := text{want: "the name of a source (in quotation marks if it looks like a number)"}
	entries, source, ok := d.leading(e, "source", kind, "want the name of an entry of sources")
	if !ok {
		return
	}
	sourceType, known := d.declared[source.expanded]
	switch {
	case !known && len(d.declared) == 0:
		d.errorf(source.value, "there is no source %q; the section sources has none", source.written)
	case !known:
		d.checkWord(source, "there is no source", slices.Collect(maps.Keys(d.declared)))
	case sourceType == "": // reported where it is declared; its type determines the keys
	default:
		d.watchOf(w, e, entries, source.written, sourceType)
	}
}

// watchOf reads a watch of a source of a type.
func (d *decoder) watchOf(w *Watch, e entry, entries []entry, source string, of SourceType) {
	var keys []key
	owners := map[string]string{} // of the other keys
	for _, k := range keysOf(w) {
		if k.of == nil || slices.Contains(k.of, string(of)) {
			keys = append(keys, k)
		} else {
			owners[k.name] = strings.Join(k.of, " or ")
		}
	}
	entries = slices.DeleteFunc(entries, func(given entry) bool {
		owner, misplaced := owners[given.name]
		if misplaced {
			d.errorf(value{node: given.key, path: e.path}, "%s is for watches of %s sources; %q is of type %s", given.name, owner, source, of)
		}
		return misplaced
	})
	d.fill(w, e.value, entries, keys)
	if (of == GRPCs || of == Gateway) && w.Watch == "" {
		w.Watch = w.Name
	}
}
