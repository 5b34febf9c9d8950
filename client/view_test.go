package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
)

var narrow = View{Prefix: "eu/", Keys: []string{"eu/a", `b,"c"`}, Labels: "app in (web, shop)", Filter: `value.n > 1 && key != "a&b"`, Fields: []string{"state", `tags."a,b",node`}}

// Every parameter of a view reaches the server as it was given.
func TestViewIsSentWithEveryRequest(t *testing.T) {
	var asked []url.Values
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query())
		fmt.Fprint(w, `{"resources":[]}`)
	})
	defer stop()
	if _, err := s.Snapshot(t.Context(), "w", narrow); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(t.Context(), "w", "k", narrow); err != nil {
		t.Error(err)
	}
	if len(asked) != 2 {
		t.Fatalf("%d requests, want 2", len(asked))
	}
	for i, got := range asked {
		got.Del("page_size")
		wantView(t, fmt.Sprint("request ", i), got, "")
	}
}

// TestSnapshotOfAWindow: the parameters of a window are sent, and no page size.
func TestSnapshotOfAWindow(t *testing.T) {
	var asked url.Values
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query()
		fmt.Fprint(w, `{"total":9,"before":3,"next":"abc","resources":[{"key":"b"},{"key":"a"}]}`)
	})
	defer stop()
	got, err := s.Snapshot(t.Context(), "w", View{Order: "-n,m", Limit: 2, Offset: 3})
	if err != nil || got.Total != 9 || got.Before != 3 || got.Next != "abc" || len(got.Resources) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if want := (url.Values{"order": {"-n,m"}, "limit": {"2"}, "offset": {"3"}}); asked.Encode() != want.Encode() {
		t.Errorf("got %v, want %v", asked, want)
	}
}

// wantView checks that a query has the parameters of narrow, and no others.
func wantView(t *testing.T, what string, got url.Values, suffix string) {
	t.Helper()
	want := url.Values{
		"prefix" + suffix: {"eu/"}, "keys" + suffix: {`eu/a,"b,""c"""`}, "labels" + suffix: {"app in (web, shop)"},
		"filter" + suffix: {`value.n > 1 && key != "a&b"`}, "fields" + suffix: {`state,tags."a,b",node`},
	}
	if got.Encode() != want.Encode() {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// TestFirst: the keys that come first are sent until there is a position.
func TestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{breaks(hello + reset + upsert("a", 1, true)), replies(hello + allGone)}}
		if _, err := follow(t, s, t.Context(), nil, First("a", "b,c")); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{`a,"b,c"`, ""} {
			if got := s.requests[i].URL.Query().Get("first.w"); got != want {
				t.Errorf("connection %d asks for %q first, want %q", i, got, want)
			}
		}
	})
}

// A stream keeps its view over all its connections, as it keeps its position.
func TestWatchSendsItsViewWithEveryConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{breaks(hello + reset + upsert("a", 1, true)), replies(hello + allGone)}}
		if _, err := follow(t, s, t.Context(), nil, narrow); err != nil {
			t.Fatal(err)
		}
		if want := []string{"", "w@e-1"}; !slices.Equal(s.resumeIDs(), want) {
			t.Errorf("resumed from %q, want %q", s.resumeIDs(), want)
		}
		for i, r := range s.requests {
			got := r.URL.Query()
			got.Del("watch")
			wantView(t, fmt.Sprint("connection ", i), got, ".w")
		}
	})
}

// A refusal has the text of the server, with the place and the advice, and names what is
// wrong. It is final, whichever connection got it.
func TestWatchEndsWithTheRefusalOfAFilter(t *testing.T) {
	const detail = "filter, column 9: = is no operator: did you mean ==?"
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"type":"about:blank","title":"Bad Request","status":400,"detail":%q,"watch":"w","parameter":"filter.w","offset":8,"line":1,"column":9}`, detail)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{breaks(hello + reset + upsert("a", 1, true)), refuse, replies(allGone)}}
		_, err := follow(t, s, t.Context(), nil, View{Filter: "value.n = 1"})
		var p *Problem
		if !errors.As(err, &p) || p.Detail != detail || p.Parameter != "filter.w" || p.Watch != "w" || p.Offset != 8 || p.Line != 1 || p.Column != 9 || !p.Final() {
			t.Errorf("got %v (%+v)", err, p)
		}
		if len(s.requests) != 2 {
			t.Errorf("%d connections, want 2: the refusal is final", len(s.requests))
		}
	})
}
