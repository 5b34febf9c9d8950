package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseTag(t *testing.T) {
	type section struct {
		Plain   string        `yaml:"plain"`
		Pulse   time.Duration `yaml:"pulse,min=1ms"`
		Ceiling int64         `yaml:"ceiling,min=1MiB,off"`
		Pump    string        `yaml:"pump,is=pump"`
		None    string        `yaml:"-"`
	}
	for i, want := range []tag{
		{name: "plain"},
		{name: "pulse", min: "1ms", least: int64(time.Millisecond)},
		{name: "ceiling", min: "1MiB", least: 1 << 20, off: true},
		{name: "pump", is: "pump"},
		{name: "-"},
	} {
		got, err := parseTag(reflect.TypeFor[section]().Field(i))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestMalformedTags(t *testing.T) {
	type section struct {
		None     string
		Unknown  string        `yaml:"a,mni=1s"`
		Duration time.Duration `yaml:"b,min=1MiB"`
		Size     int64         `yaml:"c,min=1s"`
		Kind     string        `yaml:"d,is=adress"`
	}
	for i, want := range []string{
		"None has no yaml tag", `option "mni=1s": no such option`, `option "min=1MiB": time: `,
		`option "min=1s": neither a duration nor a number of bytes`, `option "is=adress": no such kind`,
	} {
		if _, err := parseTag(reflect.TypeFor[section]().Field(i)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// TestTags reads the tags of every section, and finds kinds of text that no tag names.
func TestTags(t *testing.T) {
	used := map[string]bool{"": true, "network": true, "printable": true}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		switch {
		case typ.Kind() == reflect.Slice:
			walk(typ.Elem())
		case typ == reflect.TypeFor[namedFile]():
		case typ.Kind() == reflect.Struct && typ.PkgPath() == reflect.TypeFor[Config]().PkgPath():
			for i := range typ.NumField() {
				parsed, err := parseTag(typ.Field(i))
				if err != nil {
					t.Errorf("%s: %v", typ, err)
				}
				used[parsed.is] = true
				walk(typ.Field(i).Type)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	walk(reflect.TypeFor[serverTLS]())
	walk(reflect.TypeFor[clientTLS]())
	for name := range texts {
		if !used[name] {
			t.Errorf("no tag names the kind of text %q", name)
		}
	}
}
