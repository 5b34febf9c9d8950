package decode

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Tag is the parsed struct tag of a field, which describes its key:
//
//	StallAfter time.Duration `yaml:"stall_after,min=500ms"`
//
// The name of the key comes first; "-" is a field without a key. Options follow:
//
//	required       the key must be given
//	min=500ms      the least duration or number of bytes
//	off            0 turns it off, also below min; the field is negative then
//	not            a bool is the opposite of the key
//	bytes          an int is a number of bytes, not a count
//	is=origin      what kind of text: one of texts
//	names=header   what kind of names Metadata has: one of nameKinds
//	files=…        the other key of Metadata, with names of files as its values
//	of=etcd|grpc   only watches of sources of these types have the key
//	named          a list of structs is a mapping from their Name
//	inline         the keys of a struct are among those around it
//	server         TLS of a listener, not of a client
type Tag struct {
	Name     string
	Required bool
	Min      string
	Least    int64 // the limit of min: nanoseconds or bytes
	Off      bool
	Not      bool
	Bytes    bool
	Is       string
	Names    string
	Files    string
	Of       []string
	Named    bool
	Inline   bool
	Server   bool
	Why      string // the tag "why": the reason for the limit
}

// ParseTag reads the tag of a field. isKind reports whether the argument of the options is and
// names is one.
func ParseTag(f reflect.StructField, isKind func(option, argument string) bool) (Tag, error) {
	text := f.Tag.Get("yaml")
	if text == "" {
		return Tag{}, fmt.Errorf("%s has no yaml tag", f.Name)
	}
	parts := strings.Split(text, ",")
	t := Tag{Name: parts[0]}
	if why, ok := f.Tag.Lookup("why"); ok {
		t.Why = ", " + why
	}
	for _, option := range parts[1:] {
		if err := t.add(option, f.Type, isKind); err != nil {
			return Tag{}, fmt.Errorf("%s: option %q: %w", f.Name, option, err)
		}
	}
	return t, nil
}

// add reads one option of the tag of a field.
func (t *Tag) add(option string, field reflect.Type, isKind func(option, argument string) bool) (err error) {
	name, argument, _ := strings.Cut(option, "=")
	switch name {
	case "required":
		t.Required = true
	case "min":
		t.Min = argument
		t.Least, err = parseLeast(argument, field)
	case "off":
		t.Off = true
	case "not":
		t.Not = true
	case "bytes":
		t.Bytes = true
	case "is":
		t.Is = argument
		err = among(isKind(name, argument))
	case "names":
		t.Names = argument
		err = among(isKind(name, argument))
	case "files":
		t.Files = argument
	case "of":
		t.Of = strings.Split(argument, "|")
	case "named":
		t.Named = true
	case "inline":
		t.Inline = true
	case "server":
		t.Server = true
	default:
		err = errors.New("no such option")
	}
	return err
}

func among(known bool) error {
	if !known {
		return errors.New("no such kind")
	}
	return nil
}

func parseLeast(text string, field reflect.Type) (int64, error) {
	if field == reflect.TypeFor[time.Duration]() {
		least, err := time.ParseDuration(text)
		return int64(least), err
	}
	if least, ok := ParseSize(text); ok {
		return least, nil
	}
	return 0, errors.New("neither a duration nor a number of bytes")
}

// Smallest returns the smallest number that is accepted.
func (t Tag) Smallest() int64 {
	if t.Off {
		return 0
	}
	return max(1, t.Least)
}

// WantDuration says which durations are accepted. It gives examples if the smallest one is not
// a good example.
func (t Tag) WantDuration() string {
	want := "a duration"
	switch {
	case t.Min != "":
		want += " of at least " + t.Min
	case !t.Off:
		want += " of more than zero"
	}
	if t.Least <= int64(time.Millisecond) {
		if want != "a duration" {
			want += ","
		}
		want += " such as 500ms, 15s or 10m"
	}
	if t.Off {
		want += ", or 0s for none"
	}
	return want
}

// WantSize says which numbers of bytes are accepted.
func (t Tag) WantSize() string {
	switch {
	case t.Off:
		return "a number of bytes such as 4096 or 4KiB, or 0 for none"
	case t.Min != "":
		return "a number of bytes of at least " + t.Min + ", such as 512MiB or 2GiB"
	}
	return "a number of bytes of at least 1, such as 65536 or 64KiB"
}
