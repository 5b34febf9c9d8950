package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestNewServerRefusesWhatIsNoURL(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:8080", "ftp://x", "http://", "http://a b", "localhost"} {
		if _, err := NewServer(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestServerEscapesKeysAndKeepsItsPath(t *testing.T) {
	s, err := NewServer("https://example.com/gw%2Fx/")
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
		if got, err := s.Line(t.Context(), "w", key); err != nil || string(got) != line {
			t.Errorf("%q: got %s, %v", key, got, err)
		}
	}
	want := []string{"/v1/watches/w/resources/a%2Fb", "/v1/watches/w/resources/%2Fw==?key_encoding=base64"}
	if fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestResourcesReadsEveryPageAndBeginsAnewWhenItsRevisionIsGone(t *testing.T) {
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
	all, err := s.Resources(t.Context(), "w", "p/")
	if text, _ := json.Marshal(all); err != nil || requests != 4 ||
		string(text) != `[{"key":"a","revision":"1","value":1},{"key":"b","revision":"2","value":2}]` {
		t.Errorf("got %s, %v after %d requests", text, err, requests)
	}
}

// What comes on one line is not touched; what something on the way has indented
// is one line again.
func TestLines(t *testing.T) {
	s, stop := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"resources":[{"key":"a","value":{"n": 1}}, {`+"\n"+`"key": "b", "value": "<  >" }]}`)
	})
	defer stop()
	lines, err := s.Lines(t.Context(), "w", "")
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
	_, err := s.Resources(t.Context(), "w", "")
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

func TestRetryAfter(t *testing.T) {
	soon := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for header, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "-5": 0, "x": 0, "Fri, 01 Jan 2010 00:00:00 GMT": 0, soon: time.Hour,
	} {
		if got := retryAfter(header); got > want || got < want-2*time.Second {
			t.Errorf("%q: got %v, want %v", header, got, want)
		}
	}
}

func TestProblemSaysWhatTheServerSaid(t *testing.T) {
	for want, p := range map[string]Problem{
		"404 Not Found: there is none": {Status: 404, Title: "Not Found", Detail: "there is none"},
		"502 Bad Gateway":              {Status: 502},
	} {
		if p.Error() != want {
			t.Errorf("got %s, want %s", p.Error(), want)
		}
	}
	for status, final := range map[int]bool{400: true, 401: true, 404: true, 406: true, 408: false, 410: true, 414: true, 425: false, 429: false, 500: false, 503: false} {
		if p := (&Problem{Status: status}); p.Final() != final {
			t.Errorf("%d: final %v", status, p.Final())
		}
	}
}
