package main

import (
	"strings"
	"testing"
)

const generated = `{"swagger":"2.0","info":{"title":"t","version":"v"},"paths":{"/a":{"get":{
	"parameters":[{"name":"n","in":"query","type":"string","format":"uint64"}],
	"responses":{"200":{"description":"ok","schema":{"$ref":"#/definitions/A"}}}}}},
	"definitions":{"A":{"type":"object","properties":{"value":{"type":"string","format":"byte"}}}}}`

func TestBuildConvertsAndMerges(t *testing.T) {
	out, err := build([]byte(generated), []byte("info: {title: Other}\ncomponents: {schemas: {A: {properties: {value: {type: null, format: null}}}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"openapi": "3.0.3"`, `"title": "Other"`, `"$ref": "#/components/schemas/A"`, `"value": {}`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	for _, c := range []struct{ name, generated, overlay, want string }{
		{"a document that is not JSON", "{", "", "generated document"},
		{"an overlay that is not YAML", generated, "a: [", "overlay"},
		{"a reference to nothing", generated, `components: {schemas: {B: {$ref: "#/components/schemas/None"}}}`, "None"},
		{"an invalid document", generated, "info: {title: null}", "title"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := build([]byte(c.generated), []byte(c.overlay)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one that contains %q", err, c.want)
			}
		})
	}
}
