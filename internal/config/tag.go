package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// tag is the parsed struct tag of a field, which describes its key:
//
//	StallAfter time.Duration `yaml:"stall_after,min=500ms"`
//
// The name of the key comes first; "-" is a field without a key. Options follow:
//
//	required       the key must be given
//	min=500ms      the least duration or number of bytes
//	off            0 turns it off, also below min; the field is negative then
//	bytes          an int is a number of bytes, not a count
//	is=origin      what kind of text: one of texts
//	names=header   what kind of names Metadata has: one of nameKinds
//	files=…        the other key of Metadata, with names of files as its values
//	of=etcd|grpc   only watches of sources of these types have the key
//	named          a list of structs is a mapping from their Name
//	inline         the keys of a struct are among those around it
//	server         TLS of a listener, not of a client
type tag struct {
	name     string
	required bool
	min      string
	least    int64 // the limit of min: nanoseconds or bytes
	off      bool
	bytes    bool
	is       string
	names    string
	files    string
	of       []string
	named    bool
	inline   bool
	server   bool
	why      string // the tag "why": the reason for the limit
}

func parseTag(f reflect.StructField) (tag, error) {
	text := f.Tag.Get("yaml")
	if text == "" {
		return tag{}, fmt.Errorf("%s has no yaml tag", f.Name)
	}
	parts := strings.Split(text, ",")
	t := tag{name: parts[0]}
	if why, ok := f.Tag.Lookup("why"); ok {
		t.why = ", " + why
	}
	for _, option := range parts[1:] {
		if err := t.add(option, f.Type); err != nil {
			return tag{}, fmt.Errorf("%s: option %q: %w", f.Name, option, err)
		}
	}
	return t, nil
}

// add reads one option of the tag of a field.
func (t *tag) add(option string, field reflect.Type) (err error) {
	name, argument, _ := strings.Cut(option, "=")
	switch name {
	case "required":
		t.required = true
	case "min":
		t.min = argument
		t.least, err = parseLeast(argument, field)
	case "off":
		t.off = true
	case "bytes":
		t.bytes = true
	case "is":
		t.is = argument
		err = among(texts, argument)
	case "names":
		t.names = argument
		err = among(nameKinds, argument)
	case "files":
		t.files = argument
	case "of":
		t.of = strings.Split(argument, "|")
	case "named":
		t.named = true
	case "inline":
		t.inline = true
	case "server":
		t.server = true
	default:
		err = errors.New("no such option")
	}
	return err
}

func among[V any](kinds map[string]V, name string) error {
	if _, ok := kinds[name]; !ok {
		return errors.New("no such kind")
	}
	return nil
}

func parseLeast(text string, field reflect.Type) (int64, error) {
	if field == reflect.TypeFor[time.Duration]() {
		least, err := time.ParseDuration(text)
		return int64(least), err
	}
	if least, ok := parseSize(text); ok {
		return least, nil
	}
	return 0, errors.New("neither a duration nor a number of bytes")
}

// smallest is the least number that is accepted.
func (t tag) smallest() int64 {
	if t.off {
		return 0
	}
	return max(1, t.least)
}

// key is one key of a section.
type key struct {
	name string
	tag
	into   any    // a pointer to the field
	advice string // follows "… is missing"
}

// keysOf returns the keys of a section, which is a pointer to a struct, in the
// order of its fields. It panics if a tag is malformed; a test reads all of them.
func keysOf(section any) []key {
	v := reflect.ValueOf(section).Elem()
	var keys []key
	for i := range v.NumField() {
		t, err := parseTag(v.Type().Field(i))
		if err != nil {
			panic(fmt.Sprintf("config: %s: %v", v.Type(), err))
		}
		keys = append(keys, keysOfField(t, v.Field(i).Addr().Interface())...)
	}
	return keys
}

func keysOfField(t tag, into any) []key {
	switch {
	case t.inline:
		keys := keysOf(into)
		for i := range keys {
			keys[i].of = t.of
		}
		return keys
	case t.name == "-":
		return nil
	case t.files != "":
		return []key{{t.name, t, into, ""}, {t.files, t, into, ""}}
	}
	return []key{{t.name, t, into, "; want " + texts[t.is].want}}
}
