//go:build servers

package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

func newObjectWriter(t *testing.T, c Config) *adapter.Writer {
	t.Helper()
	w, err := NewWriter(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// specOf returns the spec of an object of the server; "": there is none.
func (k *kind) specOf(namespace, name string) string {
	k.t.Helper()
	answer, code := k.do(http.MethodGet, k.collection(namespace)+"/"+name, "", http.StatusNotFound)
	if code == http.StatusNotFound {
		return ""
	}
	var object struct{ Spec json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &object); err != nil {
		k.t.Fatal(err)
	}
	return string(object.Spec)
}

func TestWriter(t *testing.T) {
	t.Parallel()
	k := sharedKind(t)
	w := newObjectWriter(t, k.config())
	put := func(key, value string, ifRevision ...uint64) (stream.Resource, bool, error) {
		r := stream.PutRequest{Key: key, Value: []byte(value)}
		if len(ifRevision) > 0 {
			r.IfRevision = &ifRevision[0]
		}
		return w.Put(t.Context(), r)
	}
	first, created, err := put("default/a", k.json("default", "a", `{"n":9007199254740993}`))
	if err != nil || !created || !strings.Contains(string(first.Value), `"creationTimestamp"`) || strings.Contains(string(first.Value), "managedFields") {
		t.Fatalf("%s, created %v, error %v", first.Value, created, err)
	}
	if got := k.specOf("default", "a"); got != `{"n":9007199254740993}` {
		t.Errorf("the server has %s", got)
	}
	// What was read can be changed and sent back, as an editor does.
	second, created, err := put("default/a", strings.Replace(string(first.Value), `{"n":9007199254740993}`, `{"n":2}`, 1), first.Revision)
	if err != nil || created || second.Revision <= first.Revision || k.specOf("default", "a") != `{"n":2}` {
		t.Errorf("at %d after %d, created %v, error %v", second.Revision, first.Revision, created, err)
	}
	conflict := new(stream.ConflictError)
	if _, _, err := put("default/a", string(first.Value), first.Revision); !errors.As(err, &conflict) || conflict.Got != second.Revision {
		t.Errorf("over an older revision: error %v", err)
	}
	if _, _, err := put("default/a", string(first.Value), 0); !errors.As(err, &conflict) {
		t.Errorf("only if it is new: error %v", err)
	}
	r := stream.PutRequest{Key: "default/new", Value: []byte(k.json("default", "new", `{}`)), ValidateOnly: true}
	if shown, created, err := w.Put(t.Context(), r); err != nil || !created || !strings.Contains(string(shown.Value), `"uid"`) || k.specOf("default", "new") != "" {
		t.Errorf("only to validate: %s, created %v, error %v", shown.Value, created, err)
	}
	if deleted, err := w.Delete(t.Context(), stream.DeleteRequest{Key: "default/a", ValidateOnly: true}); !deleted || err != nil || k.specOf("default", "a") == "" {
		t.Errorf("only to validate a delete: %v, error %v", deleted, err)
	}
	for _, want := range []bool{true, false} {
		if deleted, err := w.Delete(t.Context(), stream.DeleteRequest{Key: "default/a"}); deleted != want || err != nil {
			t.Errorf("deleted %v, error %v", deleted, err)
		}
	}
	rejected := new(stream.RejectedError)
	for key, value := range map[string]string{
		"default/Upper": k.json("default", "Upper", `1`),
		"nowhere/a":     strings.Replace(k.json("nowhere", "a", `1`), `"Kind`, `"Another`, 1),
	} {
		if _, _, err := put(key, value); !errors.As(err, &rejected) || strings.Contains(err.Error(), k.server.Addr()) {
			t.Errorf("%s: error %v", key, err)
		}
	}
}

// TestWriterIsNoDeputy: nothing but the object of the key is reached, whatever the key and the value are.
func TestWriterIsNoDeputy(t *testing.T) {
	t.Parallel()
	k := sharedKind(t)
	k.mustPut("default", "other", `"untouched"`)
	k.mustPut("space0", "a", `"untouched"`)
	c := k.config()
	c.Namespace = "default"
	c.LabelSelector = "name!=other"
	w := newObjectWriter(t, c)
	object := func(change ...string) string {
		return strings.NewReplacer(change...).Replace(k.json("default", "a", `1`))
	}
	for _, test := range []struct{ key, value string }{
		{"a", object()},
		{"space0/a", object(`"default"`, `"space0"`)},
		{"default/a/status", object()},
		{"default/../a", object()},
		{"default/..", object()},
		{"default/.", object()},
		{"default/", object()},
		{"/a", object()},
		{"default/a%2fstatus", object()},
		{"default/a%2Fb", object()},
		{"default/a?dryRun=All", object()},
		{"default/a", object(`"name":"a","labels"`, `"name":"b","labels"`)},
		{"default/a", object(`"default"`, `"space0"`)},
		{"default/a", object(`"name":"a","labels"`, `"name":"a","name":"b","labels"`)},
		{"default/a", object(`"metadata"`, `"metadata":{"name":"b"},"metadata"`)},
		{"default/a", object(`"apiVersion":"example.com/v1"`, `"apiVersion":"v1"`)},
		{"default/a", object(`"labels":{"name":"a"}`, `"labels":{"name":"other"}`)},
		{"default/other", object(`"name":"a","labels"`, `"name":"other","labels"`)},
		{"default/a", `[]`},
		{"default/a", `{"metadata":1}`},
		{"default/a", `"text"`},
	} {
		invalid, rejected := new(stream.InvalidError), new(stream.RejectedError)
		if _, _, err := w.Put(t.Context(), stream.PutRequest{Key: test.key, Value: []byte(test.value)}); !errors.As(err, &invalid) && !errors.As(err, &rejected) {
			t.Errorf("%q: %s: error %v", test.key, test.value, err)
		}
		if test.key == "default/a" {
			continue
		}
		if deleted, err := w.Delete(t.Context(), stream.DeleteRequest{Key: test.key}); deleted || err == nil && test.key != "default/a?dryRun=All" {
			t.Errorf("delete of %q: %v, error %v", test.key, deleted, err)
		}
	}
	for place, want := range map[[2]string]string{{"default", "other"}: `"untouched"`, {"space0", "a"}: `"untouched"`, {"default", "a"}: "", {"default", "b"}: ""} {
		if got := k.specOf(place[0], place[1]); got != want {
			t.Errorf("%v has %s, want %s", place, got, want)
		}
	}
	c.FieldSelector = "metadata.name=a"
	if _, err := NewWriter(c, slog.Default()); err == nil || !strings.Contains(err.Error(), "want label_selector") {
		t.Errorf("with a field selector: error %v", err)
	}
}

// TestWriterAndAnother: what a rule has decided on is what is replaced.
func TestWriterAndAnother(t *testing.T) {
	t.Parallel()
	k := sharedKind(t)
	w := newObjectWriter(t, k.config())
	k.mustPut("default", "a", `"mine"`)
	decisions := 0
	mine := func(old *stream.Resource) error {
		if decisions++; decisions%2 == 1 {
			k.mustPut("default", "a", fmt.Sprintf(`"yours %d"`, decisions))
			return nil
		}
		if !strings.Contains(string(old.Value), "yours") {
			return nil
		}
		return errors.New("not mine")
	}
	_, _, err := w.Put(t.Context(), stream.PutRequest{Key: "default/a", Value: []byte(k.json("default", "a", `"new"`)), Condition: func(old *stream.Resource, _ []byte) error { return mine(old) }})
	if err == nil || err.Error() != "not mine" || decisions != 2 {
		t.Errorf("put: %d decisions, error %v", decisions, err)
	}
	if deleted, err := w.Delete(t.Context(), stream.DeleteRequest{Key: "default/a", Condition: mine}); deleted || err == nil || err.Error() != "not mine" {
		t.Errorf("delete: %v, error %v", deleted, err)
	}
	if got := k.specOf("default", "a"); got != `"yours 3"` {
		t.Errorf("the server has %s", got)
	}
}

// TestWriterInTheNameOfItsAuthor: the server decides by the rights of the author, and not by those of the gateway.
func TestWriterInTheNameOfItsAuthor(t *testing.T) {
	t.Parallel()
	k := ownCluster(t).kind(true)
	k.tokens("admin admin", "acts deputy", "reads reader")
	as := func(token string) (*adapter.Writer, *strings.Builder) {
		c := k.config()
		c.Kubeconfig = k.kubeconfig(k.server.Addr(), `{token: `+token+`}`)
		c.Impersonate = true
		log := new(strings.Builder)
		w, err := NewWriter(c, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		return w, log
	}
	w, log := as("acts")
	alice := &stream.Author{Name: "alice ü", Groups: []string{"staff", "writers"}}
	bob := &stream.Author{Name: "bob", Groups: []string{"staff"}}
	put := func(w *adapter.Writer, by *stream.Author, spec string) error {
		_, _, err := w.Put(t.Context(), stream.PutRequest{Key: "default/a", Value: []byte(k.json("default", "a", spec)), By: by})
		return err
	}
	for _, spec := range []string{`1`, `2`} { // it is created, and replaced
		if err := put(w, alice, spec); err != nil || k.specOf("default", "a") != spec {
			t.Errorf("as alice: error %v, the server has %s", err, k.specOf("default", "a"))
		}
	}
	denied := new(stream.DeniedError)
	if err := put(w, bob, `3`); !errors.As(err, &denied) || !strings.Contains(err.Error(), `User "bob" cannot get resource`) {
		t.Errorf("as bob: error %v", err)
	}
	if _, err := w.Delete(t.Context(), stream.DeleteRequest{Key: "default/a", By: bob}); !errors.As(err, &denied) {
		t.Errorf("a delete as bob: error %v", err)
	}
	if err := put(w, nil, `3`); !errors.As(err, &denied) {
		t.Errorf("as nobody: error %v", err)
	}
	if k.specOf("default", "a") != `2` || log.Len() > 0 {
		t.Errorf("the server has %s, log %s", k.specOf("default", "a"), log)
	}
	other, log := as("reads")
	unable := new(stream.UnavailableError)
	if err := put(other, alice, `3`); !errors.As(err, &unable) || !strings.Contains(log.String(), "cannot impersonate") ||
		!strings.Contains(log.String(), "want a role that may impersonate users and groups") {
		t.Errorf("without the right to impersonate: error %v, log %s", err, log)
	}
	if deleted, err := w.Delete(t.Context(), stream.DeleteRequest{Key: "default/a", By: alice}); !deleted || err != nil {
		t.Errorf("a delete as alice: %v, error %v", deleted, err)
	}
}

func TestWriterWithoutPermission(t *testing.T) {
	t.Parallel()
	k := ownCluster(t).kind(true)
	k.tokens("admin admin", "reads reader")
	c := k.config()
	c.Kubeconfig = k.kubeconfig(k.server.Addr(), `{token: reads}`)
	var log strings.Builder
	w, err := NewWriter(c, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	unable := new(stream.UnavailableError)
	if _, _, err := w.Put(t.Context(), stream.PutRequest{Key: "default/a", Value: []byte(k.json("default", "a", `1`))}); !errors.As(err, &unable) ||
		!strings.Contains(log.String(), "want a role that may get it") || strings.Contains(log.String(), "reads") && strings.Contains(err.Error(), "reads") {
		t.Errorf("error %v, log %s", err, log.String())
	}
}
