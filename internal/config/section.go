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
)

// checked is a section whose keys depend on each other. check runs after all of
// them were read; at is the place of the section's own key.
type checked interface {
	check(d *decoder, at value)
}

// section reads a mapping into a struct, by the tags of its fields.
func (d *decoder) section(v value, into any) {
	entries, ok := d.entries(v)
	if !ok {
		return
	}
	d.readKeys(v, entries, keysOf(into))
	if c, ok := into.(checked); ok {
		c.check(d, v.atKey())
	}
}

// readKeys reads the entries of a mapping, in the order of keys.
func (d *decoder) readKeys(v value, entries []entry, keys []key) {
	given := map[string]value{}
	for _, e := range entries {
		if !slices.ContainsFunc(keys, func(k key) bool { return k.name == e.name }) {
			d.unknownKey(e, v.path, keyNames(keys))
			continue
		}
		given[e.name] = e.value
	}
	for _, k := range keys {
		if v, ok := given[k.name]; ok {
			d.given[k.into] = v
			d.read(v, k)
		}
	}
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
		d.readCount(v, into)
	case *int64:
		d.readSize(v, k.tag, into)
	case *time.Duration:
		d.readDuration(v, k.tag, into)
	case *netip.Prefix:
		d.readNetwork(v, into)
	case **tls.Config:
		d.serverTLS(into)(v)
	case *[]Source:
		d.sources(v, into)
	case *[]Watch:
		d.watches(v, into)
	default:
		d.readOther(v, k)
	}
}

// readOther reads a section, or a list of anything.
func (d *decoder) readOther(v value, k key) {
	switch field := reflect.ValueOf(k.into).Elem(); field.Kind() {
	case reflect.Struct:
		d.section(v, k.into)
	case reflect.Slice:
		d.readList(v, k.tag, field)
	default:
		panic(fmt.Sprintf("config: %s: nothing reads a %s", k.name, field.Type()))
	}
}

func (d *decoder) readList(v value, t tag, list reflect.Value) {
	d.readItems(v, func(v value) {
		item := reflect.New(list.Type().Elem())
		d.read(v, key{t, item.Interface()})
		list.Set(reflect.Append(list, item.Elem()))
	})
}

func (d *decoder) readItems(v value, read func(value)) {
	v, ok := d.resolve(v)
	if !ok {
		return
	}
	list, ok := v.node.(*ast.SequenceNode)
	if !ok {
		d.errorf(v, "want a list, not %s", kind(v.node))
		return
	}
	for i, n := range list.Values {
		read(value{node: n, path: v.path + "[" + strconv.Itoa(i) + "]"})
	}
}
