package commands

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// asked is a server that records queries and gives one answer to all of them.
type asked struct {
	*httptest.Server

	mu      sync.Mutex // guards the following field
	queries []url.Values
}

// ask starts a server that answers with a handler.
func ask(t *testing.T, answer http.HandlerFunc) *asked {
	t.Helper()
	a := &asked{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.queries = append(a.queries, r.URL.Query())
		a.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// last returns the parameters of the newest request that narrow a watch.
func (a *asked) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queries) == 0 {
		return ""
	}
	query := a.queries[len(a.queries)-1]
	for _, other := range []string{"watch", "page_size", "until"} {
		query.Del(other)
	}
	return query.Encode()
}

const nothing = `retry: 1

event: hello
data: {"type":"hello","heartbeat_ms":15000,"watches":[]}

event: goodbye
data: {"type":"goodbye","reason":"complete","retry_ms":1}

`

func answerAnything(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/events"):
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, nothing)
	case strings.HasSuffix(r.URL.Path, "/resources"):
		fmt.Fprint(w, `{"resources":[]}`)
	default:
		fmt.Fprint(w, `{"key":"k","revision":"1","value":1}`)
	}
}

var viewFlags = []string{"--labels", "app in (web, shop)", "--filter", `value.n > 1 && key != "a&b"`, "--fields", "state", "--fields", `tags."a,b",node`, "--keys", `a,"b,c"`, "--keys", "d"}

// Each flag that narrows a watch reaches the server, with every kind of request.
func TestViewFlagsAreSent(t *testing.T) {
	s := ask(t, answerAnything)
	narrowed := func(suffix string, more ...string) string {
		want := url.Values{
			"labels" + suffix: {"app in (web, shop)"}, "filter" + suffix: {`value.n > 1 && key != "a&b"`}, "fields" + suffix: {`state,tags."a,b",node`},
			"keys" + suffix: {`a,"b,c",d`},
		}
		for i := 0; i < len(more); i += 2 {
			want.Set(more[i], more[i+1])
		}
		return want.Encode()
	}
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"a list", narrowed("", "prefix", "eu/"), []string{"get", "notes", "--prefix", "eu/"}},
		{"one resource", narrowed(""), []string{"get", "notes", "k"}},
		{"a stream", narrowed(".notes", "prefix.notes", "eu/", "digest", "1", "resume", "digest"), []string{"watch", "notes", "--prefix", "eu/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, _, stderr := command(t, append(append(c.args, viewFlags...), "--server", s.URL)...)
			if got := s.last(); code != 0 || got != c.want {
				t.Errorf("exit code %d: %s\nasked %s\nwant  %s", code, stderr, got, c.want)
			}
		})
	}
	t.Run("what comes first", func(t *testing.T) {
		code, _, stderr := command(t, "watch", "a", "b", "--first", `x,"y,z"`, "--first", "q", "--server", s.URL)
		if got, want := s.last(), (url.Values{"first.a": {`x,"y,z",q`}, "digest": {"1"}, "resume": {"digest"}}).Encode(); code != 0 || got != want {
			t.Errorf("exit code %d: %s\nasked %s\nwant  %s", code, stderr, got, want)
		}
	})
	t.Run("several watches", func(t *testing.T) {
		code, _, stderr := command(t, "watch", "a", "b", "--filter", "value.n > 1", "--server", s.URL)
		if got, want := s.last(), "digest=1&filter.a=value.n+%3E+1&filter.b=value.n+%3E+1&resume=digest"; code != 0 || got != want {
			t.Errorf("exit code %d: %s\nasked %s\nwant  %s", code, stderr, got, want)
		}
	})
}

// A mistake is found before there is a connection. On a terminal the place is shown.
func TestWrongViewFlags(t *testing.T) {
	wide := "value.n = " + strings.Repeat("1", 100)
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"a filter", "--filter, column 9: = is no operator: did you mean ==?\n  value.n = 1\n          ^\n", []string{"--filter", "value.n = 1"}},
		{"on its second line", "--filter, line 2, column 12: = is no operator: did you mean ==?\n  && value.n = 1\n             ^\n", []string{"--filter", "true\n&& value.n = 1"}},
		{"after a wide character", "= is no operator: did you mean ==?\n  \"世\" = key\n       ^\n", []string{"--filter", `"世" = key`}},
		{"after a tab", "= is no operator: did you mean ==?\n  key\t= 1\n     \t^\n", []string{"--filter", "key\t= 1"}},
		{"that a terminal would interpret", "= is no operator: did you mean ==?\n  \"\\u001b\" = 1\n           ^\n", []string{"--filter", "\"\x1b\" = 1"}},
		{"too wide to be shown", "--filter, column 9: = is no operator: did you mean ==?\nTry", []string{"--filter", wide}},
		{"labels", "--labels, column 1: ", []string{"--labels", "a in x"}},
		{"the second of the fields", "--fields, column 5: a name is missing before .: want names with dots between them, and commas between paths\n  a,b..c\n      ^\n", []string{"--fields", "a", "--fields", "b..c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ask(t, answerAnything)
			for _, of := range []string{"get", "watch"} {
				var out, errs bytes.Buffer
				p := process{stdout: &out, stderr: &errs, logTerminal: true, exit: func(int) {}}
				code := run(t.Context(), p, append([]string{of, "notes", "--server", s.URL}, c.args...))
				if code != exitUsage || !strings.Contains(errs.String(), c.want) || strings.Contains(errs.String(), "\x1b") || out.Len() > 0 {
					t.Errorf("%s: exit code %d and %q, want %q in it", of, code, errs.String(), c.want)
				}
			}
			if got := len(s.queries); got > 0 {
				t.Errorf("%d requests, want none", got)
			}
		})
	}
}

func TestWrongFilterInAPipeIsOneLine(t *testing.T) {
	code, _, stderr := command(t, "get", "notes", "--filter", "value.n = 1")
	if want := "watchtide: --filter, column 9: = is no operator: did you mean ==?\nTry --help.\n"; code != exitUsage || stderr != want {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// The server may refuse what is right here. Its text is shown as it is, and it is a
// mistake of the command line; another refusal is not.
func TestServerRefusesAFilter(t *testing.T) {
	const detail = "filter, column 1: it is estimated to cost 9000, and at most 5000 is allowed"
	for parameter, want := range map[string]int{"filter": exitUsage, "filter.notes": exitUsage, "page_size": exitError} {
		s := ask(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"title":"Bad Request","status":400,"detail":%q,"parameter":%q}`, detail, parameter)
		})
		for _, args := range [][]string{{"get", "notes"}, {"get", "notes", "k"}, {"watch", "notes"}} {
			code, _, stderr := command(t, append(args, "--filter", "value.n > 1", "--server", s.URL)...)
			if code != want || !strings.HasPrefix(stderr, "watchtide: 400 Bad Request: "+detail+"\n") {
				t.Errorf("%s, %v: exit code %d, want %d: %s", parameter, args, code, want, stderr)
			}
		}
	}
}

// The place that the server names is shown on a terminal, if there is such a place.
func TestPlaceOfARefusal(t *testing.T) {
	for name, c := range map[string]struct{ place, want string }{
		"in the text":  {`"offset":8,"line":1,"column":9`, "so it is\n  value.n > 1\n          ^\nTry --help.\n"},
		"at its end":   {`"offset":11,"line":1,"column":12`, "so it is\n  value.n > 1\n             ^\nTry --help.\n"},
		"none":         {`"offset":8`, "so it is\nTry --help.\n"},
		"behind it":    {`"offset":12,"line":1,"column":13`, "so it is\nTry --help.\n"},
		"before it":    {`"offset":-1,"line":1,"column":1`, "so it is\nTry --help.\n"},
		"not a number": {`"offset":"8","line":1,"column":9`, "Try --help.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := ask(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"title":"Bad Request","status":400,"detail":"so it is","parameter":"filter",%s}`, c.place)
			})
			for _, args := range [][]string{{"get", "notes"}, {"watch", "notes"}} {
				var errs bytes.Buffer
				p := process{stdout: &bytes.Buffer{}, stderr: &errs, logTerminal: true, exit: func(int) {}}
				code := run(t.Context(), p, append(args, "--filter", "value.n > 1", "--server", s.URL))
				if code != exitUsage || !strings.HasSuffix(errs.String(), c.want) {
					t.Errorf("%v: exit code %d and %q, want %q at its end", args, code, errs.String(), c.want)
				}
			}
		})
	}
}

// TestGetAndWatchNarrow checks the flags with a real gateway.
func TestGetAndWatchNarrow(t *testing.T) {
	g := serve(t)
	g.put("a", `{"n":1,"labels":{"team":"red"}}`)
	g.put("b", `{"n":2,"labels":{"team":"red"}}`)
	g.put("c", `{"n":3,"labels":{"team":"blue"}}`)
	flags := []string{"--server", g.url(), "--labels", "team=red", "--filter", "value.n > 1", "--fields", "n"}
	code, stdout, stderr := command(t, append([]string{"get", "notes"}, flags...)...)
	if want := `{"key":"b","revision":"2","value":{"n":2}}` + "\n"; code != 0 || stdout != want {
		t.Errorf("get: exit code %d: %s%s", code, stdout, stderr)
	}
	if code, stdout, _ := command(t, append([]string{"get", "notes", "b"}, flags...)...); code != 0 || !strings.Contains(stdout, `"value":{"n":2}`) {
		t.Errorf("get of one: exit code %d: %s", code, stdout)
	}
	if code, _, stderr := command(t, append([]string{"get", "notes", "c"}, flags...)...); code != exitError || !strings.Contains(stderr, "404") {
		t.Errorf("get of one that is not in the view: exit code %d: %s", code, stderr)
	}
	w := start(t, append([]string{"watch", "notes"}, flags...)...)
	next := w.expectOf("upsert", "delete", "end_of_snapshot")
	next(`{"type":"upsert","watch":"notes","key":"b","revision":"2","value":{"n":2}}`)
	w.line() // end_of_snapshot
	g.put("a", `{"n":4,"labels":{"team":"red"}}`)
	next(`{"type":"upsert","watch":"notes","key":"a","revision":"4","value":{"n":4}}`)
	g.put("b", `{"n":5,"labels":{"team":"blue"}}`)
	next(`{"type":"delete","watch":"notes","key":"b","revision":"5"}`)
}
