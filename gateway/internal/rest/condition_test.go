package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/watchtide/watchtide/stream"
)

func TestTagMatches(t *testing.T) {
	for _, test := range []struct {
		header []string
		want   bool
	}{
		{nil, false}, {[]string{""}, false}, {[]string{`"a"`}, true}, {[]string{`W/"a"`}, true},
		{[]string{`"b"`, `"a"`}, true}, {[]string{`"b" ,"a" `}, true}, {[]string{"*"}, true},
		{[]string{`a`}, false}, {[]string{`"aa"`}, false}, {[]string{`w/"a"`}, false},
	} {
		if got := tagMatches(test.header, `"a"`); got != test.want {
			t.Errorf("%q: %t", test.header, got)
		}
	}
}

// FuzzCondition checks that a condition is either understood as meant, or
// refused.
func FuzzCondition(f *testing.F) {
	for _, s := range []string{"", `"1"`, `"0"`, "*", `W/"1"`, `"18446744073709551615"`, `"+1"`, `"1","2"`} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, value string, match bool) {
		h := http.Header{"If-None-Match": {value}}
		if match {
			h = http.Header{"If-Match": {value}}
		}
		revision, given, p := condition(h)
		switch {
		case p != nil && (p.Status != 400 || p.Parameter == "" || !utf8.ValidString(p.Detail)):
			t.Errorf("%q: %+v", value, p)
		case p == nil && !given:
			t.Errorf("%q is ignored", value)
		case p == nil && match && !bytes.Contains([]byte(value), []byte(strconv.FormatUint(revision, 10))):
			t.Errorf("%q is read as %d", value, revision)
		case p == nil && !match && revision != 0:
			t.Errorf("%q asks for revision %d", value, revision)
		}
	})
}

// FuzzCheckJSON checks that exactly what encoding/json and UTF-8 allow is accepted,
// and that an error is located within the body.
func FuzzCheckJSON(f *testing.F) {
	for _, s := range []string{"", "{}", "{", "nul", "\"\xff\"", "1 2", "\n\n x", "[1,]", "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := checkJSON(raw)
		if ok := json.Valid(raw) && utf8.Valid(raw); ok != (p == nil) {
			t.Errorf("%q: valid %t, problem %v", raw, ok, p)
		}
		if p != nil && (p.Status != 400 || p.Parameter != "body" || !utf8.ValidString(p.Detail)) {
			t.Errorf("%q: %+v", raw, p)
		}
	})
}

func TestPlace(t *testing.T) {
	raw := []byte("ab\nc\n")
	for offset, want := range [][2]int{{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {3, 1}, {3, 1}} {
		if line, column := place(raw, offset); line != want[0] || column != want[1] {
			t.Errorf("offset %d: %d:%d, want %v", offset, line, column, want)
		}
	}
	if line, column := place(nil, -1); line != 1 || column != 1 {
		t.Errorf("nothing: %d:%d", line, column)
	}
}

// FuzzChangesRequest checks that any query is understood, or refused with a reason.
func FuzzChangesRequest(f *testing.F) {
	for _, s := range []string{"", "after=w@e-1&wait=1s", "wait=-1s", "prefix=%ff", "filter.w=x", "wait=1s&wait=1s", "%zz", "after=w@e-1/2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL = &url.URL{Path: "/", RawQuery: query}
		ask, p := parseChanges(r)
		if p != nil {
			if p.Status != 400 && p.Status != 414 || p.Detail == "" || !utf8.ValidString(p.Detail) {
				t.Errorf("%q: %+v", query, p)
			}
			return
		}
		if ask.wait < 0 || ask.wait > maxPollWait || len(ask.after) > stream.MaxPositionLength {
			t.Errorf("%q: %+v", query, ask)
		}
	})
}
