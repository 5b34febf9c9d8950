package client

import (
	"encoding/json"
	"reflect"
	"testing"
)

// changes are events, and whether they are read quickly.
var changes = map[string]struct {
	name  EventType
	data  string
	quick bool
}{
	"upsert":             {"upsert", `{"type":"upsert","watch":"w","key":"a/b c","revision":"7","value":{"n":[1,"}"]}}`, true},
	"value with spaces":  {"upsert", `{"type":"upsert","watch":"w","key":"a","revision":"7","value": "x" }`, true},
	"delete":             {"delete", `{"type":"delete","watch":"w","key":"a","revision":"7"}`, true},
	"escape in the key":  {"upsert", `{"type":"upsert","watch":"w","key":"a\"b","revision":"7","value":1}`, false},
	"key beyond ASCII":   {"upsert", `{"type":"upsert","watch":"w","key":"é","revision":"7","value":1}`, false},
	"encoded value":      {"upsert", `{"type":"upsert","watch":"w","key":"a","revision":"7","value":"AAE=","encoding":"base64"}`, false},
	"encoded key":        {"upsert", `{"type":"upsert","watch":"w","key":"/w==","key_encoding":"base64","revision":"7","value":1}`, false},
	"field of a newer":   {"upsert", `{"type":"upsert","watch":"w","key":"a","revision":"7","value":{},"labels":{"a":"b"}}`, false},
	"delete and more":    {"delete", `{"type":"delete","watch":"w","key":"a","revision":"7","value":{}}`, false},
	"other order":        {"upsert", `{"watch":"w","type":"upsert","key":"a","revision":"7","value":1}`, false},
	"space":              {"upsert", `{ "type":"upsert","watch":"w","key":"a","revision":"7","value":1}`, false},
	"another type":       {"upsert", `{"type":"delete","watch":"w","key":"a","revision":"7"}`, false},
	"no value":           {"upsert", `{"type":"upsert","watch":"w","key":"a","revision":"7"}`, false},
	"empty value":        {"upsert", `{"type":"upsert","watch":"w","key":"a","revision":"7","value":}`, false},
	"half a value":       {"upsert", `{"type":"upsert","watch":"w","key":"a","revision":"7","value":{"n":1}`, false},
	"cut in the key":     {"upsert", `{"type":"upsert","watch":"w","key":"a`, false},
	"cut in a literal":   {"upsert", `{"type":"upsert","wat`, false},
	"nothing":            {"upsert", ``, false},
	"raw line break":     {"upsert", "{\"type\":\"upsert\",\"watch\":\"w\",\"key\":\"a\nb\",\"revision\":\"7\",\"value\":1}", false},
	"two values":         {"upsert", `{"type":"upsert","watch":"w","key":"a","revision":"7","value":1}}`, false},
	"key ends in escape": {"upsert", `{"type":"upsert","watch":"w","key":"a\\","revision":"7","value":1}`, false},
}

func TestQuickChange(t *testing.T) {
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			if _, ok := quickChange(c.name, []byte(c.data)); ok != c.quick {
				t.Errorf("read quickly: %t, want %t", ok, c.quick)
			}
			sameAsJSON(t, c.name, []byte(c.data))
		})
	}
}

// sameAsJSON checks that the quick reader's result equals a JSON decoder's.
func sameAsJSON(t *testing.T, name EventType, data []byte) {
	t.Helper()
	got, ok := quickChange(name, data)
	if !ok {
		return
	}
	var want Event
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatalf("%s: read quickly, and not JSON: %v", data, err)
	}
	got.Data = nil
	if string(got.Value) != "" { // a decoder drops the spaces around it
		got.Value = json.RawMessage(trim(got.Value))
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", data, got, want)
	}
}

func trim(value []byte) []byte {
	var raw json.RawMessage
	_ = json.Unmarshal(value, &raw)
	return raw
}

func FuzzQuickChange(f *testing.F) {
	for _, c := range changes {
		f.Add(c.name == Delete, []byte(c.data))
	}
	f.Fuzz(func(t *testing.T, isDelete bool, data []byte) {
		name := Upsert
		if isDelete {
			name = Delete
		}
		sameAsJSON(t, name, data)
	})
}
