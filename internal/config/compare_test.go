package config

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
)

// compared is a configuration in which each test of TestEqual changes something.
const compared = `
sources:
  local: { type: store }
  core:  { type: gateway, url: "https://core.example.com", tls: { server_name: core }, token_file: token, header_files: { x-key: key } }
  cells: { type: etcd, endpoints: ["etcd:2379"], username: root, password_file: password }
watches:
  notes: { source: local }
  orders: { source: core, filter: "value.n > 1" }
  some: { view_of: notes, filter: "value.n > 1", fields: [a, b] }
  states: { view_of: notes, by: [a], sum: b }
  busiest: { view_of: notes, order: -a, limit: 5 }
  "orders-{region}": { source: core, watch: "o-{region}", params: { region: "[a-z]+" } }
  "part-{n}": { view_of: notes, params: { n: "[0-9]" }, prefix: "{n}/" }
`

// withFiles parses a configuration that names files.
func withFiles(t *testing.T, text string, files map[string]string) *Config {
	t.Helper()
	c, err := Parse("gateway.yaml", []byte(text), Environment{ReadFile: func(name string) ([]byte, error) {
		if data, ok := files[name]; ok {
			return []byte(data), nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// differences names the entries that are not equal.
func differences(a, b *Config) string {
	var names []string
	for i := range a.Sources {
		if !a.Sources[i].Equal(b.Sources[i]) {
			names = append(names, a.Sources[i].Name)
		}
	}
	for i := range a.Watches {
		if !a.Watches[i].Equal(b.Watches[i]) {
			names = append(names, a.Watches[i].Name)
		}
	}
	for i := range a.Templates {
		if !a.Templates[i].Equal(b.Templates[i]) {
			names = append(names, a.Templates[i].Name)
		}
	}
	return strings.Join(names, " ")
}

func TestEqual(t *testing.T) {
	files := map[string]string{"token": "t", "key": "k", "password": "p"}
	before := withFiles(t, compared, files)
	for _, c := range []struct{ old, with, want string }{
		{"", "", ""},
		{"# comment", "", ""},
		{"type: store }", "type: store, max_bytes: 1MiB }", "local"},
		{"server_name: core", "server_name: other", "core"},
		{"tls: { server_name: core }, ", "", "core"},
		{"etcd:2379", "etcd:2380", "cells"},
		{"notes: { source: local }", "notes: { source: local, required: true }", "notes"},
		{"notes: { source: local }", "notes: { source: local, labels_at: l }", "notes some states busiest part-{n}"},
		{`by: [a], sum: b`, `by: [a], sum: c`, "states"},
		{`order: -a, limit: 5`, `order: a, limit: 5`, "busiest"},
		{`order: -a, limit: 5`, `order: -a, limit: 6`, "busiest"},
		{`by: [a], sum: b`, `by: [a, b], sum: b`, "states"},
		{`orders: { source: core, filter: "value.n > 1" }`, `orders: { source: core, filter: "value.n > 2" }`, "orders"},
		{`fields: [a, b]`, `fields: [a, c]`, "some"},
		{"sources:", "stream: { history: { max_age: 1m } }\nsources:", "notes orders some states busiest orders-{region} part-{n}"},
		{"sources:", "stream: { heartbeat: 1m }\nsources:", ""},
		{"[a-z]+", "[a-z]{1,3}", "orders-{region}"},
		{"o-{region}", "p-{region}", "orders-{region}"},
		{`"[0-9]" }`, `"[0-9]" }, max: 7`, "part-{n}"},
		{"notes: { source: local }", "notes: { source: local, compression: none }", ""},
		{`prefix: "{n}/"`, `prefix: "x{n}/"`, "part-{n}"},
		{"file:key", "other", ""}, // those are read for each connection
		{"file:password", "other", ""},
		{"file:token", "other", ""},
	} {
		t.Run(c.old+" "+c.with, func(t *testing.T) {
			text, changed := compared, map[string]string{}
			for name, content := range files {
				changed[name] = content
			}
			if name, ok := strings.CutPrefix(c.old, "file:"); ok {
				changed[name] = c.with
			} else {
				text = strings.Replace(text, c.old, c.with, 1)
			}
			after := withFiles(t, text, changed)
			if got := differences(before, after); got != c.want {
				t.Errorf("different are %q, want %q", got, c.want)
			}
			if got := differences(after, withFiles(t, text, changed)); got != "" {
				t.Errorf("read twice, different are %q", got)
			}
		})
	}
}

// Equal looks at no TLS configuration itself, since certificates cannot be compared. This
// finds the one of a new source.
func TestEqualIgnoresTLS(t *testing.T) {
	for kind := range (&Source{}).sections() {
		a, b := Source{Type: kind}, Source{Type: kind}
		for i, s := range []*Source{&a, &b} {
			section := reflect.ValueOf(s.sections()[kind]).Elem()
			for f := range section.NumField() {
				if !section.Type().Field(f).IsExported() {
					continue
				}
				if field, ok := section.Field(f).Addr().Interface().(**tls.Config); ok {
					*field = &tls.Config{ServerName: fmt.Sprint(i)}
				}
			}
		}
		if !a.Equal(b) {
			t.Errorf("sources of type %s differ by their TLS alone", kind)
		}
	}
}
