package config

import (
	"crypto/tls"
	"reflect"
	"slices"

	"github.com/watchtide/watchtide/internal/view"
)

// Equal reports whether two entries are equal, including the content of the files that were
// read into them.
func (s Source) Equal(o Source) bool { return reflect.DeepEqual(s.plain(), o.plain()) }

// plain returns s without the content of files, for which Contents stands.
func (s Source) plain() Source {
	for _, section := range s.sections() {
		of := reflect.ValueOf(section).Elem()
		if c := of.FieldByName("TLS"); c.IsValid() && !c.IsNil() {
			c.Set(reflect.ValueOf(&tls.Config{}))
		}
	}
	return s
}

// Equal reports whether two entries make the same watch. Rules of access and compression do not
// count.
func (w Watch) Equal(o Watch) bool {
	same := idOf(w.Definition) == idOf(o.Definition)
	w.Definition, w.Allow, o.Definition, o.Allow = nil, Allow{}, nil, Allow{}
	w.Compression, o.Compression = "", ""
	return same && reflect.DeepEqual(w, o)
}

func idOf(d *view.Definition) string {
	if d == nil {
		return ""
	}
	return d.ID()
}

// Equal reports whether two templates make the same watches.
func (t *Template) Equal(o *Template) bool {
	return t.Name == o.Name && t.Max == o.Max && t.MaxPerClient == o.MaxPerClient && t.sample.Equal(o.sample) &&
		t.names.String() == o.names.String() && slices.Equal(t.params, o.params) &&
		slices.EqualFunc(t.options, o.options, func(a, b option) bool {
			return a.field == b.field && reflect.DeepEqual(a.text, b.text)
		}) &&
		t.named == o.named
}
