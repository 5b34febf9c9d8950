package decode

import (
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/watchtide/watchtide/internal/suggest"
)

// fileReader is a type of another package that reads the content of a file.
type fileReader interface {
	ReadFile(name string, data []byte, mode fs.FileMode) error
}

// validator is a section of another package whose keys depend on each other. Problems
// are reported with a pointer to the field that they are in, or to the section.
type validator interface {
	Validate(report func(field any, problem string))
}

// Section reads a mapping into a struct, by the tags of its fields.
func (d *Decoder) Section(v Value, into any) {
	if entries, ok := d.Entries(v); ok {
		d.Fill(into, v, entries, d.KeysOf(into))
	}
}

// Fill reads the entries of a mapping in the order of keys, reports the keys that are
// missing, and checks the struct.
func (d *Decoder) Fill(into any, v Value, entries []Entry, keys []Key) {
	given := d.match(v, entries, keys)
	for _, k := range keys {
		if v, ok := given[k.Name]; ok {
			d.Given[k.Into] = v
			d.Read(v, k)
		}
	}
	for _, k := range keys {
		if k.Required && !d.IsGiven(k.Into) {
			d.Errorf(v.AtKey(), "%s is missing%s", k.Name, k.Advice)
		}
	}
	d.Types.CheckSection(into, v.AtKey())
	if s, ok := into.(validator); ok {
		s.Validate(func(field any, problem string) {
			if field == into {
				d.Errorf(v.AtKey(), "%s", problem)
				return
			}
			d.Errorf(d.Given[field], "%s", problem)
		})
	}
}

// match returns the values of the keys, and reports unknown ones. A misspelled
// key counts as given, so that it is reported only once.
func (d *Decoder) match(v Value, entries []Entry, keys []Key) map[string]Value {
	given, names := map[string]Value{}, keyNames(keys)
	for _, e := range entries {
		if slices.Contains(names, e.Name) {
			given[e.Name] = e.Value
			continue
		}
		d.UnknownKey(e, v.Path, names)
		if meant := slices.Index(names, suggest.Nearest(e.Name, names)); meant >= 0 {
			d.Given[keys[meant].Into] = e.Value
		}
	}
	return given
}

// IsGiven reports whether the key of a field is in the file.
func (d *Decoder) IsGiven(field any) bool {
	_, ok := d.Given[field]
	return ok
}

func keyNames(keys []Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// Read reads the value of a key, according to the type of its field.
func (d *Decoder) Read(v Value, k Key) {
	if d.Types.ReadType(v, k) {
		return
	}
	switch into := k.Into.(type) {
	case *bool:
		d.readBool(v, k.Not, into)
	case *string:
		d.ReadText(v, d.Kinds.Texts[k.Is], into)
	case *int:
		d.readInt(v, k.Tag, into)
	case *int64:
		d.readSize(v, k.Tag, into)
	case *time.Duration:
		d.readDuration(v, k.Tag, into)
	case fileReader:
		d.readFile(v, into)
	default:
		d.readOther(v, k)
	}
}

// readOther reads a section, a list of anything, or text of a named type.
func (d *Decoder) readOther(v Value, k Key) {
	field := reflect.ValueOf(k.Into).Elem()
	switch kind := field.Kind(); {
	case kind == reflect.Struct:
		d.Section(v, k.Into)
	case kind == reflect.String:
		var text string
		d.ReadText(v, d.Kinds.Texts[k.Is], &text)
		field.SetString(text)
	case kind == reflect.Slice:
		d.readList(v, k, field)
	default:
		panic(fmt.Sprintf("decode: %s: nothing reads a %s", k.Name, field.Type()))
	}
}

func (d *Decoder) readList(v Value, k Key, list reflect.Value) {
	v, ok := d.Resolve(v)
	if !ok {
		return
	}
	seq, ok := v.Node.(*ast.SequenceNode)
	if !ok {
		d.Errorf(v, "want a list, not %s", KindOf(v.Node))
		return
	}
	list.Set(reflect.MakeSlice(list.Type(), 0, len(seq.Values)))
	for i, n := range seq.Values {
		item := reflect.New(list.Type().Elem())
		k.Into = item.Interface()
		d.Read(Value{Node: n, Path: v.Path + "[" + strconv.Itoa(i) + "]"}, k)
		list.Set(reflect.Append(list, item.Elem()))
	}
}
