package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

func TestParseObject(t *testing.T) {
	pod := typeMeta{Kind: "Pod", APIVersion: "v1"}
	for _, c := range []struct {
		name, raw string
		of        typeMeta
		key, want string
	}{
		{name: "untouched", raw: `{"kind":"A","metadata":{"resourceVersion":"7","name":"x"},"spec":{"n":9007199254740993,"m":1.50,"e":1e400}}`,
			key: "x", want: `{"kind":"A","metadata":{"resourceVersion":"7","name":"x"},"spec":{"n":9007199254740993,"m":1.50,"e":1e400}}`},
		{name: "managedFields in the middle", raw: `{"kind":"A","metadata":{"name":"x","managedFields":[{"a":"]}\""}],"resourceVersion":"7"}}`,
			key: "x", want: `{"kind":"A","metadata":{"name":"x","resourceVersion":"7"}}`},
		{name: "managedFields at the beginning", raw: `{"kind":"A","metadata":{"managedFields":[{}],"name":"x","resourceVersion":"7"}}`,
			key: "x", want: `{"kind":"A","metadata":{"name":"x","resourceVersion":"7"}}`},
		{name: "managedFields at the end", raw: `{"kind":"A","metadata":{"name":"x","resourceVersion":"7","managedFields":null}}`,
			key: "x", want: `{"kind":"A","metadata":{"name":"x","resourceVersion":"7"}}`},
		{name: "managedFields elsewhere", raw: `{"kind":"A","managedFields":1,"metadata":{"name":"x","resourceVersion":"7","labels":{"managedFields":"y"}},"spec":{"managedFields":2}}`,
			key: "x", want: `{"kind":"A","managedFields":1,"metadata":{"name":"x","resourceVersion":"7","labels":{"managedFields":"y"}},"spec":{"managedFields":2}}`},
		{name: "with spaces", raw: ` { "kind" : "A" , "metadata" : { "managedFields" : [ 1 ] , "name" : "x" , "resourceVersion" : "7" } } `,
			key: "x", want: `{ "kind" : "A" , "metadata" : {  "name" : "x" , "resourceVersion" : "7" } }`},
		{name: "on several lines", raw: "{\"kind\":\"A\",\n\"metadata\":{\"name\":\"x\",\r\n\"managedFields\":[],\"resourceVersion\":\"7\"}}",
			key: "x", want: `{"kind":"A","metadata":{"name":"x","resourceVersion":"7"}}`},
		{name: "in a namespace", raw: `{"kind":"A","metadata":{"namespace":"n","name":"x","resourceVersion":"7"}}`,
			key: "n/x", want: `{"kind":"A","metadata":{"namespace":"n","name":"x","resourceVersion":"7"}}`},
		{name: "an item of a list", raw: `{"metadata":{"name":"x","resourceVersion":"7"}}`, of: pod,
			key: "x", want: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","resourceVersion":"7"}}`},
		{name: "an item with its type", raw: `{"metadata":{"name":"x","resourceVersion":"7"},"kind":"Own"}`, of: pod,
			key: "x", want: `{"metadata":{"name":"x","resourceVersion":"7"},"kind":"Own"}`},
		{name: "escapes", raw: `{"kind":"A","met\u0061data":{"n\u0061me":"\u0078","resourceVersion":"7","managed\u0046ields":[]}}`,
			key: "x", want: `{"kind":"A","met\u0061data":{"n\u0061me":"\u0078","resourceVersion":"7"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := []byte(c.raw)
			r, err := parseObject(raw, c.of)
			if err != nil {
				t.Fatal(err)
			}
			clear(raw) // the value must not alias it
			if r.Key != c.key || r.Revision != 7 || string(r.Value) != c.want {
				t.Errorf("%q at %d:\n%s\nwant %q at 7:\n%s", r.Key, r.Revision, r.Value, c.key, c.want)
			}
		})
	}
}

func TestRevisions(t *testing.T) {
	for text, want := range map[string]uint64{"1": 1, "18446744073709551615": 1<<64 - 1, "0007": 7} {
		if got, err := parseRevision(text); err != nil || got != want {
			t.Errorf("%q gives %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.0", "abc", "18446744073709551616", " 1"} {
		if got, err := parseRevision(text); !errors.Is(err, stream.ErrInvalid) || !strings.Contains(err.Error(), "want a number above 0") {
			t.Errorf("%q gives %d, %v; want an error with the expected form", text, got, err)
		}
	}
}

// FuzzObject compares with the result of encoding/json.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"A","metadata":{"name":"x","managedFields":[{"a":"]}\""}],"resourceVersion":"7"}}`,
		`{"metadata":{"managedFields":1,"name":"x","namespace":"n","resourceVersion":"7"}}`,
		`{"metadata":{"name":"x","resourceVersion":"7","managedFields":{}},"spec":[1,-2.5e3,true,null,"\\\""]}`,
		`{"metadata":7}`, `{}`, `[]`, `{"a"`, `{"metadata":{"name":"x","resourceVersion":"7"`, `{"":{},"":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for m := range members(raw) { // in any case it ends and stays within
			_ = raw[m.start:m.end]
		}
		r, err := parseObject(bytes.Clone(raw), typeMeta{Kind: "K", APIVersion: "v"})
		if err != nil {
			return
		}
		var want, got map[string]any
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("%q was taken, and is no object: %v", raw, err)
		}
		if err := json.Unmarshal(r.Value, &got); err != nil {
			t.Fatalf("%q became %q, which is no object: %v", raw, r.Value, err)
		}
		meta, ok := want["metadata"].(map[string]any)
		if !ok || repeats(raw) {
			return // of two members with one name, either may count
		}
		delete(meta, "managedFields")
		if _, named := want["kind"]; !named {
			want["kind"], want["apiVersion"] = got["kind"], got["apiVersion"]
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q became %q", raw, r.Value)
		}
		if meta["name"] != r.Key[strings.LastIndexByte(r.Key, '/')+1:] && !strings.Contains(r.Key, "/") {
			t.Errorf("key %q of %q", r.Key, raw)
		}
	})
}

// repeats reports whether an object in raw has a duplicate name.
func repeats(raw []byte) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	var twice bool
	var read func()
	read = func() {
		token, err := d.Token()
		if err != nil {
			return
		}
		switch token {
		case json.Delim('{'):
			seen := map[any]bool{}
			for d.More() {
				name, err := d.Token()
				if err != nil {
					return
				}
				twice = twice || seen[name]
				seen[name] = true
				read()
			}
			_, _ = d.Token()
		case json.Delim('['):
			for d.More() {
				read()
			}
			_, _ = d.Token()
		}
	}
	read()
	return twice
}

// FuzzWatch: whatever a server sends, the watch ends in an error or in good order.
func FuzzWatch(f *testing.F) {
	for _, seed := range []string{
		line(added, widget("a", 5)) + "\n" + markerAt(5), bookmarkAt(7), line(failed, status(410, "Expired", "old")),
		`{"type":"ADDED"}`, `{"type":"DELETED","object":{}}`, `{"object":7}`, "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := json.NewDecoder(bytes.NewReader(raw))
		for {
			var e event
			if err := d.Decode(&e); err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is((&watchCall{ctx: t.Context()}).ended(err), stream.ErrInvalid) &&
					!errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%q: %v is no reason that is known", raw, err)
				}
				return
			}
			switch e.Type {
			case bookmark:
				at, err := parseBookmark(e.Object)
				if (err == nil) != (at.revision > 0) {
					t.Errorf("%q: a bookmark at %d, %v", raw, at.revision, err)
				}
			case failed:
				if parseStatus(e.Object) == nil {
					t.Errorf("%q: an error that is none", raw)
				}
			}
		}
	})
}
