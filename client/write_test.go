package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
)

func TestPut(t *testing.T) {
	var asked []string
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, fmt.Sprint(r.Method, " ", r.RequestURI, " ", string(body), r.Header["Content-Type"], r.Header["If-Match"], r.Header["If-None-Match"]))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintln(w, `{"key":"k","revision":"7","value":1}`)
	})
	defer stop()
	for key, c := range map[string]Condition{"a/b": {}, "..": {Revision: "6"}, "new": {Absent: true}} {
		if got, err := s.Put(t.Context(), "w", key, []byte("1"), c); err != nil || string(got) != `{"key":"k","revision":"7","value":1}` {
			t.Errorf("%q: got %s, %v", key, got, err)
		}
	}
	slices.Sort(asked)
	want := []string{
		`PUT /v1/watches/w/resources/Li4=?key_encoding=base64 1[application/json] ["6"] []`,
		`PUT /v1/watches/w/resources/a%2Fb 1[application/json] [] []`,
		`PUT /v1/watches/w/resources/new 1[application/json] [] [*]`,
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestDelete(t *testing.T) {
	var asked []string
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, fmt.Sprint(r.Method, " ", r.RequestURI, r.Header["If-Match"]))
		fmt.Fprintf(w, `{"deleted":%t}`, len(asked) == 1)
	})
	defer stop()
	first, err1 := s.Delete(t.Context(), "w", "\xff", Condition{})
	second, err2 := s.Delete(t.Context(), "w", "k", Condition{Revision: "6"})
	if !first || second || err1 != nil || err2 != nil {
		t.Errorf("got %v, %v, %v, %v", first, err1, second, err2)
	}
	if want := []string{"DELETE /v1/watches/w/resources/%2Fw==?key_encoding=base64[]", `DELETE /v1/watches/w/resources/k["6"]`}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestWritesThatConflict(t *testing.T) {
	s, stop := serve(t, http.HandlerFunc(refuses(http.StatusPreconditionFailed)))
	defer stop()
	_, err1 := s.Put(t.Context(), "w", "k", []byte("1"), Condition{Revision: "6"})
	_, err2 := s.Delete(t.Context(), "w", "k", Condition{Revision: "6"})
	for _, err := range []error{err1, err2} {
		if !errors.Is(err, ErrConflict) || errors.Is(err, ErrForbidden) {
			t.Errorf("got %v", err)
		}
	}
}
