package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// reviewing runs a test of a reviewer against a server in memory, in a bubble.
func reviewing(t *testing.T, answer http.HandlerFunc, test func(t *testing.T, r *Reviewer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{t: t, conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &httptest.Server{Listener: f, Config: &http.Server{Handler: answer}, EnableHTTP2: true}
		server.StartTLS()
		ca := pemOf(server.Certificate())
		r, err := NewReviewer(Config{Logger: slog.New(slog.DiscardHandler), inCluster: func() (*rest.Config, error) {
			return &rest.Config{Host: "https://example.com", Dial: f.dial, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, BearerToken: "own-secret"}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		test(t, r)
		r.Close()
		server.CloseClientConnections()
		server.Close()
	})
}

// echoing answers with the question and a status.
func echoing(status string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var asked map[string]json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked["status"] = json.RawMessage(status)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(asked)
	}
}

func TestReviewToken(t *testing.T) {
	reviewing(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if want := `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"a.b.c","audiences":["watchtide"]}}`; string(body) != want || r.Method != "POST" || r.URL.Path != "/apis/authentication.k8s.io/v1/tokenreviews" || r.Header.Get("Authorization") != "Bearer own-secret" {
			t.Errorf("%s %s: %s", r.Method, r.URL, body)
		}
		fmt.Fprint(w, `{"kind":"TokenReview","status":{"authenticated":true,"audiences":["watchtide"],"user":{"username":"ann","uid":"u-1","groups":["staff"],"extra":{"a":["b"]}}}}`)
	}, func(t *testing.T, r *Reviewer) {
		got, err := r.ReviewToken(t.Context(), "a.b.c", []string{"watchtide"})
		want := TokenReview{Authenticated: true, User: User{Name: "ann", UID: "u-1", Groups: []string{"staff"}, Extra: map[string][]string{"a": {"b"}}}, Audiences: []string{"watchtide"}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestReviewsThatAreNone: an answer that is not about what was asked is none, and an error has neither
// the token nor the gateway's own.
func TestReviewsThatAreNone(t *testing.T) {
	const token = "header.payload.signature"
	status := func(code int, header, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set("Retry-After", header)
			}
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, map[int]string{401: "Unauthorized", 403: "Forbidden", 429: "TooManyRequests"}[code], message)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another token":     {replies(201, `{"kind":"TokenReview","spec":{"token":"x.y.z"},"status":{"authenticated":true}}`), "not about the token"},
		"another kind":      {replies(201, `{"kind":"Status","status":{"authenticated":true}}`), "not about the token"},
		"no status":         {echoing(`null`), "not about the token"},
		"two minds":         {echoing(`{"authenticated":true,"error":"cannot check header.payload.signature"}`), "could not be checked: cannot check [hidden]"},
		"no JSON":           {replies(200, `<html>`), "not what Kubernetes answers"},
		"huge":              {replies(201, `{"kind":"TokenReview","status":{"authenticated":true,"user":{"username":"`+strings.Repeat("x", maxReview)+`"}}}`), "more than 1048576 bytes"},
		"500":               {status(500, "", "own-secret and header.payload.signature "+strings.Repeat("x", 5000)), "[hidden] and [hidden] xxx"},
		"429":               {status(429, "7", "too many"), "too many"},
		"no right":          {status(403, "", "cannot create"), "want a cluster role that may create tokenreviews"},
		"our own token":     {status(401, "", "Unauthorized"), "want credentials that the server knows"},
		"another case":      {replies(201, `{"kind":"TokenReview","Status":{"authenticated":true}}`), "not about the token"},
		"a list for a text": {echoing(`{"authenticated":true,"user":{"username":["ann"]}}`), "not what Kubernetes answers"},
		"hangs":             {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within 5s"},
		"never ends": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			fmt.Fprint(w, `{"kind":"TokenReview",`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "no answer within 5s"},
	} {
		reviewing(t, c.answer, func(t *testing.T, r *Reviewer) {
			got, err := r.ReviewToken(t.Context(), token, []string{"watchtide"})
			if err == nil || got.Authenticated || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "signature") || strings.Contains(err.Error(), "secret") || len(err.Error()) > 500 {
				t.Errorf("%s: %+v, %v; want %q", name, got, err, c.want)
			}
			var busy *BusyError
			if errors.As(err, &busy) != (name == "429") || busy != nil && busy.RetryAfter() != 7*time.Second {
				t.Errorf("%s: %#v", name, err)
			}
		})
	}
}

// TestReviewAccess: only an answer about the same user and the same attributes counts.
func TestReviewAccess(t *testing.T) {
	ann := User{Name: "ann", UID: "u-1", Groups: []string{"a", "b"}, Extra: map[string][]string{"x": {"y"}}}
	pods := Attributes{Verb: "list", Resource: "pods", Namespace: "one"}
	answer := func(user, uid, groups, attributes, status string) http.HandlerFunc {
		return replies(201, fmt.Sprintf(`{"kind":"SubjectAccessReview","spec":{"user":%q,"uid":%q,"groups":%s,"resourceAttributes":%s},"status":%s}`, user, uid, groups, attributes, status))
	}
	const groups, attributes, yes = `["a","b"]`, `{"verb":"list","resource":"pods","namespace":"one"}`, `{"allowed":true}`
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		allowed bool
		fails   bool
	}{
		"allowed":            {answer("ann", "u-1", groups, attributes, yes), true, false},
		"with an error":      {echoing(`{"allowed":true,"evaluationError":"a role is missing"}`), true, false},
		"not allowed":        {answer("ann", "u-1", groups, attributes, `{"allowed":false}`), false, false},
		"nothing said":       {answer("ann", "u-1", groups, attributes, `{}`), false, false},
		"denied as well":     {answer("ann", "u-1", groups, attributes, `{"allowed":true,"denied":true}`), false, false},
		"another user":       {answer("eve", "u-1", groups, attributes, yes), false, true},
		"another uid":        {answer("ann", "u-2", groups, attributes, yes), false, true},
		"other groups":       {answer("ann", "u-1", `["a"]`, attributes, yes), false, true},
		"another namespace":  {answer("ann", "u-1", groups, `{"verb":"list","resource":"pods","namespace":"two"}`, yes), false, true},
		"another verb":       {answer("ann", "u-1", groups, `{"verb":"watch","resource":"pods","namespace":"one"}`, yes), false, true},
		"no status":          {echoing(`null`), false, true},
		"a word for a truth": {echoing(`{"allowed":"true"}`), false, true},
	} {
		reviewing(t, c.answer, func(t *testing.T, r *Reviewer) {
			if allowed, err := r.ReviewAccess(t.Context(), ann, pods); allowed != c.allowed || (err != nil) != c.fails {
				t.Errorf("%s: %v, %v", name, allowed, err)
			}
		})
	}
}

// TestNamespaces reads pages.
func TestNamespaces(t *testing.T) {
	pages := map[string]string{
		"":  `{"kind":"NamespaceList","metadata":{"continue":"x"},"items":[{"metadata":{"name":"one"}},{"metadata":{"name":"two"}}]}`,
		"x": `{"kind":"NamespaceList","metadata":{},"items":[{"metadata":{"name":"three"}},{"metadata":{"name":"a/b"}},{"metadata":{}}]}`,
	}
	reviewing(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, pages[r.URL.Query().Get("continue")]) }, func(t *testing.T, r *Reviewer) {
		for most, want := range map[int]string{10: "[one two three]", 2: "[one two]", 1: "[one]"} {
			if got, err := r.Namespaces(t.Context(), most); fmt.Sprint(got) != want || err != nil {
				t.Errorf("%v, %v; want %s", got, err, want)
			}
		}
		pages["x"] = `{"kind":"NamespaceList","metadata":{"continue":"x"}}`
		if got, err := r.Namespaces(t.Context(), 10); err == nil {
			t.Errorf("a list without an end: %v", got)
		}
	})
}
