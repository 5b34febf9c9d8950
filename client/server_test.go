package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
)

func TestNewServerRefusesInvalidURLs(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:8080", "ftp://x", "http://", "http://a b", "localhost"} {
		if _, err := NewServer(bad, ServerOptions{}); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestServerEscapesKeysAndKeepsItsPath(t *testing.T) {
	s, err := NewServer("https://example.com/gw%2Fx/", ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := s.url(nil, "v1", "watches", "w", "resources", "a/b c?d#e%2F/../é\x00")
	const want = "https://example.com/gw%2Fx/v1/watches/w/resources/a%2Fb%20c%3Fd%23e%252F%2F..%2F%C3%A9%00"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLineAsksForAnyKey(t *testing.T) {
	var asked []string
	const line = `{"key":"k","revision":"18446744073709551615","value":{"n": 9007199254740993, "s": "<\n>"}}`
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI)
		fmt.Fprintln(w, line)
	})
	defer stop()
	for _, key := range []string{"a/b", "\xff"} {
		if got, err := s.Line(t.Context(), "w", key, View{}); err != nil || string(got) != line {
			t.Errorf("%q: got %s, %v", key, got, err)
		}
	}
	want := []string{"/v1/watches/w/resources/a%2Fb", "/v1/watches/w/resources/%2Fw==?key_encoding=base64"}
	if fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestResourcesReadsEveryPageAndStartsOverWhenItsRevisionIsGone(t *testing.T) {
	requests := 0
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		token := r.URL.Query().Get("page_token")
		if r.URL.Query().Get("prefix") != "p/" {
			t.Errorf("prefix %q", r.URL.Query().Get("prefix"))
		}
		switch {
		case token == "":
			fmt.Fprint(w, `{"resources":[{"key":"a","revision":"1","value":1}],"next_page_token":"t"}`)
		case requests == 2:
			refuses(http.StatusGone)(w, r)
		default:
			fmt.Fprint(w, `{"resources":[{"key":"b","revision":"2","value":2}]}`)
		}
	})
	defer stop()
	all, err := s.Resources(t.Context(), "w", View{Prefix: "p/"})
	if text, _ := json.Marshal(all); err != nil || requests != 4 ||
		string(text) != `[{"key":"a","revision":"1","value":1},{"key":"b","revision":"2","value":2}]` {
		t.Errorf("got %s, %v after %d requests", text, err, requests)
	}
}

// A resource on one line is unchanged; an indented one becomes one line again.
func TestLines(t *testing.T) {
	s, stop := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"resources":[{"key":"a","value":{"n": 1}}, {`+"\n"+`"key": "b", "value": "<  >" }]}`)
	})
	defer stop()
	lines, err := s.Lines(t.Context(), "w", View{})
	want := []string{`{"key":"a","value":{"n": 1}}`, `{"key":"b","value":"<  >"}`}
	if err != nil || fmt.Sprintf("%s", lines) != fmt.Sprint(want) {
		t.Errorf("got %s, %v, want %s", lines, err, want)
	}
}

func TestResourcesGivesUpWhenItsRevisionIsAlwaysGone(t *testing.T) {
	requests := 0
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		refuses(http.StatusGone)(w, r)
	})
	defer stop()
	_, err := s.Resources(t.Context(), "w", View{})
	var p *Problem
	if !errors.As(err, &p) || p.Status != http.StatusGone || requests != listAttempts {
		t.Errorf("got %v after %d requests", err, requests)
	}
}

func TestWatches(t *testing.T) {
	s, stop := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"watches":[{"name":"notes","source":"local","state":"in_sync","more":1}]}`)
	})
	defer stop()
	all, err := s.Watches(t.Context())
	if err != nil || len(all) != 1 || all[0] != (Watch{"notes", "local", "in_sync"}) {
		t.Errorf("got %+v, %v", all, err)
	}
}
