package document

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// member and object keep what encoding/json loses: the order, and what is repeated.
type member struct {
	name  string
	value any
}

type object []member

// decode reads a valid value with encoding/json, numbers as they are written.
func decode(value []byte) any {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	return decodeNext(d)
}

func decodeNext(d *json.Decoder) any {
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	switch token {
	case json.Delim('['):
		array := []any{}
		for d.More() {
			array = append(array, decodeNext(d))
		}
		_, _ = d.Token()
		return array
	case json.Delim('{'):
		o := object{}
		for d.More() {
			name, _ := d.Token()
			o = append(o, member{name.(string), decodeNext(d)})
		}
		_, _ = d.Token()
		return o
	}
	return token
}

// keep is the naive Project: of a value at a place, what some path leads through or ends
// at.
func keep(v any, at Path, paths []Path) (any, bool) {
	through := false
	for _, p := range paths {
		if len(p) <= len(at) && fmt.Sprintf("%q", at[:len(p)]) == fmt.Sprintf("%q", p) {
			return v, true
		}
		through = through || len(p) > len(at) && fmt.Sprintf("%q", p[:len(at)]) == fmt.Sprintf("%q", at)
	}
	switch v := v.(type) {
	case object:
		out := object{}
		for _, m := range v {
			if inner, kept := keep(m.value, append(append(Path{}, at...), m.name), paths); kept {
				out = append(out, member{m.name, inner})
			}
		}
		return out, through
	case []any:
		out := []any{}
		for _, e := range v {
			if inner, kept := keep(e, at, paths); kept {
				out = append(out, inner)
			}
		}
		return out, through
	}
	return nil, false
}

// plain makes of a decoded value what Read makes of it if all is wanted.
func plain(v any) any {
	switch v := v.(type) {
	case object:
		out := map[string]any{}
		for _, m := range v {
			out[m.name] = plain(m.value)
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, plain(e))
		}
		return out
	case json.Number:
		n, _ := number([]byte(v))
		return n
	}
	return v
}

// repeated reports whether a member that is in its object twice lies on a path or below.
func repeated(v any, rest Path) bool {
	o, isObject := v.(object)
	if len(rest) > 0 {
		found := []any{}
		for _, m := range o {
			if m.name == rest[0] {
				found = append(found, m.value)
			}
		}
		return len(found) > 1 || len(found) == 1 && repeated(found[0], rest[1:])
	}
	if !isObject {
		array, _ := v.([]any)
		for _, e := range array {
			if repeated(e, nil) {
				return true
			}
		}
		return false
	}
	seen := map[string]bool{}
	for _, m := range o {
		if seen[m.name] || repeated(m.value, nil) {
			return true
		}
		seen[m.name] = true
	}
	return false
}

// lookup returns what is at a path, and whether it is there.
func lookup(v any, at Path) (any, bool) {
	for _, name := range at {
		o, _ := v.(map[string]any)
		inner, ok := o[name]
		if !ok {
			return nil, false
		}
		v = inner
	}
	return v, true
}
