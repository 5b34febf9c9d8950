package client

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
)

var counting = Counting{By: []string{"state", `node."a,b"`}, Sum: "n", Prefix: "eu/", Labels: "app", Filter: "value.n > 1"}

const countingQuery = `by=state%2Cnode.%22a%2Cb%22&filter=value.n+%3E+1&labels=app&prefix=eu%2F&sum=n`

// A list of counts has all pages, at one revision.
func TestCountsAreAskedFor(t *testing.T) {
	var asked []string
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		next := `"more"`
		if q.Get("page_token") == "more" {
			next = `""`
		}
		q.Del("page_size")
		q.Del("page_token")
		asked = append(asked, r.URL.Path+"?"+q.Encode())
		fmt.Fprintf(w, `{"watch":"w","revision":"7","position":"w@e-7","resources":[{"key":"up","revision":"7","value":{"count":1}}],"next_page_token":%s}`, next)
	})
	defer stop()
	got, err := s.Counts(t.Context(), "w", counting)
	if err != nil || len(got.Resources) != 2 || got.Revision != "7" || string(got.Resources[0]) != `{"key":"up","revision":"7","value":{"count":1}}` {
		t.Errorf("%+v, %v", got, err)
	}
	if want := "/v1/watches/w/counts?" + countingQuery; !slices.Equal(asked, []string{want, want}) {
		t.Errorf("asked for %q, want %q twice", asked, want)
	}
}

// A stream of counts is resumed with the same counts.
func TestCountsAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{breaks(hello + reset + upsert("a", 1, true)), replies(hello + allGone)}}
		if _, err := follow(t, s, t.Context(), nil, counting, Verifying()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"", "w@e-1"}; !slices.Equal(s.resumeIDs(), want) {
			t.Errorf("resumed from %q, want %q", s.resumeIDs(), want)
		}
		for _, r := range s.requests {
			if r.URL.Path != "/v1/watches/w/counts/events" || r.URL.Query().Encode() != countingQuery {
				t.Errorf("asked for %s?%s", r.URL.Path, r.URL.Query().Encode())
			}
		}
		if _, err := follow(t, s, t.Context(), nil, counting, And("v")); !errors.Is(err, errOneWatch) {
			t.Errorf("counts of two watches: %v", err)
		}
	})
}
