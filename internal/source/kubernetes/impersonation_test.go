package kubernetes

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

func TestImpersonation(t *testing.T) {
	account := func(name string, groups ...string) *stream.Author {
		return &stream.Author{Name: name, Authenticated: true, Groups: append(groups, "system:authenticated")}
	}
	for name, c := range map[string]struct {
		author  *stream.Author
		user    string
		groups  []string
		problem string
	}{
		"a name":            {author: &stream.Author{Name: "alice"}, user: "alice"},
		"groups":            {author: &stream.Author{Name: "alice", Groups: []string{"a b", "c,d"}}, user: "alice", groups: []string{"a b", "c,d"}},
		"of the cluster":    {author: &stream.Author{Name: "alice", Groups: []string{"system:authenticated", "a"}}, user: "alice", groups: []string{"a"}},
		"letters":           {author: &stream.Author{Name: "алиса/ü@x"}, user: "алиса/ü@x"},
		"nobody":            {problem: "there is no credential"},
		"no name":           {author: &stream.Author{Groups: []string{"a"}}, problem: "there is no credential"},
		"the cluster's":     {author: &stream.Author{Name: "system:admin"}, problem: `"system:admin" begins with system:`},
		"a service account": {author: &stream.Author{Name: "system:serviceaccount:a:b"}, problem: "begins with system:"},
		"a service account that the cluster knows": {
			author: account("system:serviceaccount:shop:web", "system:serviceaccounts", "system:serviceaccounts:shop"), user: "system:serviceaccount:shop:web",
		},
		"a service account in a group":           {author: account("system:serviceaccount:shop:web", "system:serviceaccounts:shop", "a"), user: "system:serviceaccount:shop:web", groups: []string{"a"}},
		"a service account of another namespace": {author: account("system:serviceaccount:shop:web", "system:serviceaccounts:kube-system"), problem: `kube-system" begins with system:`},
		"a service account among the masters":    {author: account("system:serviceaccount:shop:web", "system:masters"), problem: `"system:masters" begins with system:`},
		"no service account":                     {author: account("system:serviceaccount:shop"), problem: "begins with system:"},
		"a service account with another name":    {author: account("system:serviceaccount:shop:a:b"), problem: "begins with system:"},
		"a service account with a line break":    {author: account("system:serviceaccount:shop:web\r\nx"), problem: "begins with system:"},
		"somebody else whom the cluster knows":   {author: account("system:node:a"), problem: "begins with system:"},
		"masters":                                {author: &stream.Author{Name: "alice", Groups: []string{"a", "system:masters"}}, problem: `"system:masters" begins with system:`},
		"no group's name":                        {author: &stream.Author{Name: "alice", Groups: []string{""}}, problem: `the name ""`},
		"a space in front":                       {author: &stream.Author{Name: " alice"}, problem: `the name " alice"`},
		"a hidden system":                        {author: &stream.Author{Name: "\tsystem:admin"}, problem: "none that can be sent"},
		"two headers":                            {author: &stream.Author{Name: "alice\r\nImpersonate-Group: system:masters"}, problem: "none that can be sent"},
		"a wide space":                           {author: &stream.Author{Name: "alice\u00a0"}, problem: "none that can be sent"},
		"no text":                                {author: &stream.Author{Name: "alice\xff"}, problem: "none that can be sent"},
		"a long name":                            {author: &stream.Author{Name: strings.Repeat("a", maxNameBytes+1)}, problem: "none that can be sent"},
		"many groups":                            {author: &stream.Author{Name: "alice", Groups: slices.Repeat([]string{"g"}, mostGroups+1)}, problem: "want 256 at most"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				var user string
				var groups []string
				requests := 0
				f.authorized = func(r *http.Request) bool {
					requests++
					user, groups = r.Header.Get("Impersonate-User"), r.Header["Impersonate-Group"]
					return true
				}
				f.list = replies(201, widget("a", 5))
				f.source.config.Impersonate = true
				w, err := NewWriter(f.source.config, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				_, _, err = w.Put(f.t.Context(), stream.PutRequest{Key: "a", Value: []byte(widget("a", 5)), By: c.author})
				if c.problem == "" {
					if err != nil || requests != 2 || user != c.user || !reflect.DeepEqual(groups, c.groups) {
						t.Errorf("error %v; %d requests, the last one as %q in %q", err, requests, user, groups)
					}
					return
				}
				denied := new(stream.DeniedError)
				if !errors.As(err, &denied) || !strings.Contains(err.Error(), c.problem) || len(err.Error()) > 1300 || requests != 0 {
					t.Errorf("error %v after %d requests, want %q in it, and none", err, requests, c.problem)
				}
				if _, err := w.Delete(f.t.Context(), stream.DeleteRequest{Key: "a", By: c.author}); !errors.As(err, &denied) {
					t.Errorf("delete: error %v", err)
				}
			})
		})
	}
}

// TestDeniedByTheCluster: what its author may not do is for the client; that the gateway may not impersonate is for
// its operator.
func TestDeniedByTheCluster(t *testing.T) {
	forbidden := func(kind, group, message string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":%q,"details":{"kind":%q,"group":%q}}`, message, kind, group)
	}
	for name, c := range map[string]struct {
		answer      string
		impersonate bool
		want        any
		logged      string
	}{
		"the author":                 {forbidden("widgets", "example.com", `User "alice" cannot create widgets`+strings.Repeat("!", 5000)), true, new(*stream.DeniedError), ""},
		"the gateway":                {forbidden("users", "", `User "gateway" cannot impersonate users`), true, new(*stream.UnavailableError), "want a role that may impersonate users and groups"},
		"the gateway, on the object": {forbidden("widgets", "example.com", `User "gateway" cannot impersonate-on:user-info:create resource "widgets"`), true, new(*stream.UnavailableError), "want a role that may impersonate users and groups"},
		"without an author":          {forbidden("widgets", "example.com", `User "gateway" cannot create widgets`), false, new(*stream.UnavailableError), "want a role that may create it"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				f.list = replies(403, c.answer)
				f.source.config.Impersonate = c.impersonate
				var log strings.Builder
				w, err := NewWriter(f.source.config, slog.New(slog.NewTextHandler(&log, nil)))
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				_, _, err = w.Put(f.t.Context(), stream.PutRequest{Key: "a", Value: []byte(widget("a", 5)), By: &stream.Author{Name: "alice"}})
				if !errors.As(err, c.want) || len(err.Error()) > 1300 || !strings.Contains(log.String(), c.logged) {
					t.Errorf("error %v, log %s", err, log.String())
				}
				if c.logged == "" && (log.Len() > 0 || !strings.Contains(err.Error(), `User "alice" cannot create widgets`)) {
					t.Errorf("error %v, log %s; want the words of the server, and nothing in the log", err, log.String())
				}
			})
		})
	}
}

// TestImpersonationOfExtra: the uid and the extra fields are sent if that is configured, and the cluster itself has said them.
func TestImpersonationOfExtra(t *testing.T) {
	author := func(change func(*stream.Author)) *stream.Author {
		a := &stream.Author{Name: "alice", Authenticated: true, UID: "u-1", Extra: map[string][]string{"scopes": {"a", "b c"}, "example.com/pod-%": {"web"}}}
		change(a)
		return a
	}
	all := http.Header{
		"Impersonate-User": {"alice"}, "Impersonate-Uid": {"u-1"},
		"Impersonate-Extra-scopes": {"a", "b c"}, "Impersonate-Extra-example.com%2Fpod-%25": {"web"},
	}
	for name, c := range map[string]struct {
		author  *stream.Author
		extra   bool
		want    http.Header
		problem string
	}{
		"all of it":         {author(func(*stream.Author) {}), true, all, ""},
		"not configured":    {author(func(*stream.Author) {}), false, http.Header{"Impersonate-User": {"alice"}}, ""},
		"of somebody else":  {author(func(a *stream.Author) { a.Authenticated = false }), true, http.Header{"Impersonate-User": {"alice"}}, ""},
		"nothing":           {&stream.Author{Name: "alice", Authenticated: true}, true, http.Header{"Impersonate-User": {"alice"}}, ""},
		"a line break":      {author(func(a *stream.Author) { a.Extra["x"] = []string{"a\nb"} }), true, nil, "the value"},
		"a uid of two":      {author(func(a *stream.Author) { a.UID = "u\r\n1" }), true, nil, "your uid"},
		"many values":       {author(func(a *stream.Author) { a.Extra["x"] = slices.Repeat([]string{"v"}, mostExtra) }), true, nil, "want 64 at most"},
		"a name in capital": {author(func(a *stream.Author) { a.Extra["X"] = nil }), true, nil, `the name "X"`},
		"no name":           {author(func(a *stream.Author) { a.Extra[""] = nil }), true, nil, `the name ""`},
	} {
		got, problem := impersonation(c.author, c.extra)
		if c.problem == "" && (problem != "" || !reflect.DeepEqual(got, c.want)) || !strings.Contains(problem, c.problem) {
			t.Errorf("%s: %v, %q", name, got, problem)
		}
	}
}
