package config

import (
	"crypto/tls"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/watchtide/watchtide/internal/config/internal/parameter"
	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream"
)

// reader is a type that reads its own values.
type reader interface {
	read(d *decoder, v value, k key)
}

// checked is a section whose keys depend on each other. check runs after all of
// them have been read; at is the place of the section's own key.
type checked interface {
	check(d *decoder, at value)
}

// section reads a mapping into a struct, by the tags of its fields.
func (d *decoder) section(v value, into any) {
	if entries, ok := d.entries(v); ok {
		d.fill(into, v, entries, keysOf(into))
	}
}

// fill reads the entries of a mapping in the order of keys, reports the keys that are
// missing, and checks the struct.
func (d *decoder) fill(into any, v value, entries []entry, keys []key) {
	given := d.match(v, entries, keys)
	for _, k := range keys {
		if v, ok := given[k.name]; ok {
			d.given[k.into] = v
			d.read(v, k)
		}
	}
	for _, k := range keys {
		if k.required && !d.isGiven(k.into) {
			d.errorf(v.atKey(), "%s is missing%s", k.name, k.advice)
		}
	}
	if c, ok := into.(checked); ok {
		c.check(d, v.atKey())
	}
}

// match returns the values of the keys, and reports unknown ones. A misspelled
// key counts as given, so that it is reported only once.
func (d *decoder) match(v value, entries []entry, keys []key) map[string]value {
	given, names := map[string]value{}, keyNames(keys)
	for _, e := range entries {
		if slices.Contains(names, e.name) {
			given[e.name] = e.value
			continue
		}
		d.unknownKey(e, v.path, names)
		if meant := slices.Index(names, suggest.Nearest(e.name, names)); meant >= 0 {
			d.given[keys[meant].into] = e.value
		}
	}
	return given
}

// isGiven reports whether the key of a field is in the file.
func (d *decoder) isGiven(field any) bool {
	_, ok := d.given[field]
	return ok
}

func keyNames(keys []key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

// read reads the value of a key, according to the type of its field.
func (d *decoder) read(v value, k key) {
	switch into := k.into.(type) {
	case *bool:
		d.readBool(v, into)
	case *string:
		d.readText(v, texts[k.is], into)
	case *int:
		d.readInt(v, k.tag, into)
	case *int64:
		d.readSize(v, k.tag, into)
	case *time.Duration:
		d.readDuration(v, k.tag, into)
	case *netip.Prefix:
		d.readNetwork(v, into)
	case **tls.Config:
		*into = d.readTLS(v, k.server)
	case reader:
		into.read(d, v, k)
	default:
		d.readOther(v, k)
	}
}

// readOther reads a section, a list of anything, or text of a named type.
func (d *decoder) readOther(v value, k key) {
	field := reflect.ValueOf(k.into).Elem()
	switch kind := field.Kind(); {
	case kind == reflect.Struct:
		d.section(v, k.into)
	case kind == reflect.String:
		var text string
		d.readText(v, texts[k.is], &text)
		field.SetString(text)
	case kind == reflect.Slice && k.named:
		d.readNamed(v, k, field)
	case kind == reflect.Slice:
		d.readList(v, k, field)
	default:
		panic(fmt.Sprintf("config: %s: nothing reads a %s", k.name, field.Type()))
	}
}

func (d *decoder) readList(v value, k key, list reflect.Value) {
	v, ok := d.resolve(v)
	if !ok {
		return
	}
	seq, ok := v.node.(*ast.SequenceNode)
	if !ok {
		d.errorf(v, "want a list, not %s", kind(v.node))
		return
	}
	for i, n := range seq.Values {
		item := reflect.New(list.Type().Elem())
		k.into = item.Interface()
		d.read(value{node: n, path: v.path + "[" + strconv.Itoa(i) + "]"}, k)
		list.Set(reflect.Append(list, item.Elem()))
	}
}

// readNamed reads a mapping from names, in the order of the file.
func (d *decoder) readNamed(v value, k key, list reflect.Value) {
	entries, _ := d.entries(v)
	for _, e := range entries {
		_, watch := reflect.Zero(list.Type().Elem()).Interface().(Watch)
		if stream.CheckWatchName(e.name) != nil && !(watch && parameter.IsName(e.name)) {
			d.errorf(value{node: e.key}, "%q: want %s", e.name, texts["watch"].want)
		}
		item := reflect.New(list.Type().Elem())
		item.Elem().FieldByName("Name").SetString(e.name)
		k.into = item.Interface()
		d.read(e.value, k)
		list.Set(reflect.Append(list, item.Elem()))
	}
}
