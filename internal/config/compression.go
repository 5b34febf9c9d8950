package config

import "slices"

// Uncompressed is the value of "compression" for a watch that is never compressed.
const Uncompressed = "none"

// Uncompressed returns the entries of "watches" that are never compressed: their names, and
// those of templates.
func (c *Config) Uncompressed() (names []string) {
	for _, w := range c.Watches {
		if w.Compression == Uncompressed {
			names = append(names, w.Name)
		}
	}
	for _, t := range c.Templates {
		if t.sample.Compression == Uncompressed {
			names = append(names, t.Name)
		}
	}
	return names
}

// isPlain reports whether an entry is not compressed, because it says so, or because it is a
// view of an entry that does. If clients decide by a name what it is a view of, it is a view of
// every entry in this respect.
func (d *decoder) isPlain(name string) bool {
	path, _ := d.lineage.follow(d.watches[name])
	return slices.ContainsFunc(path, func(w declaredWatch) bool {
		return w.plain || d.choosesView(w.name) && d.hasPlain()
	})
}

// choosesView reports whether an entry is a template of views of different watches.
func (d *decoder) choosesView(name string) bool {
	t := d.templatings[name]
	return t != nil && slices.ContainsFunc(t.options, func(o option) bool { return o.field == fieldOfViewOf })
}

func (d *decoder) hasPlain() bool {
	for _, w := range d.watches {
		if w.plain {
			return true
		}
	}
	return false
}
