package decode

import (
	"fmt"
	"reflect"
)

// Kinds are the kinds that tags of keys can name.
//
// Static after construction.
type Kinds struct {
	// Texts are the kinds of text; "" is one without a name.
	Texts map[string]Text
	// IsName reports whether there is a kind of names.
	IsName func(string) bool
}

// Has reports whether the argument of an option of a tag is a kind of texts or of names.
func (k Kinds) Has(option, argument string) (known bool) {
	if option == "names" {
		return k.IsName(argument)
	}
	_, known = k.Texts[argument]
	return known
}

// Key is one key of a section.
type Key struct {
	Name string
	Tag
	Into   any    // a pointer to the field
	Advice string // follows "… is missing"
}

// KeysOf returns the keys of a section, which is a pointer to a struct, in the
// order of its fields. It panics if a tag is malformed; a test reads all of them.
func (d *Decoder) KeysOf(section any) []Key {
	v := reflect.ValueOf(section).Elem()
	var keys []Key
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		t, err := ParseTag(v.Type().Field(i), d.Kinds.Has)
		if err != nil {
			panic(fmt.Sprintf("decode: %s: %v", v.Type(), err))
		}
		keys = append(keys, d.keysOfField(t, v.Field(i).Addr().Interface())...)
	}
	return keys
}

func (d *Decoder) keysOfField(t Tag, into any) []Key {
	switch {
	case t.Inline:
		keys := d.KeysOf(into)
		for i := range keys {
			if t.Of != nil {
				keys[i].Of = t.Of
			}
		}
		return keys
	case t.Name == "-":
		return nil
	case t.Files != "":
		return []Key{{t.Name, t, into, ""}, {t.Files, t, into, ""}}
	}
	return []Key{{t.Name, t, into, "; want " + d.Kinds.Texts[t.Is].Want}}
}
