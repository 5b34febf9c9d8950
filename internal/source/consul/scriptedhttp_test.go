package consul

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// httpFault is one way in which the HTTP API is wrong or hostile.
type httpFault struct {
	collection, name string
	said             page
	silent           bool
	want             error  // the class of the error; nil: any
	outcome          string // in the text of the error
}

func httpFaults() []httpFault {
	list := func(body string) page { return page{index: 9, body: body} }
	long := strings.Repeat("long-name-", 10_000)
	return []httpFault{
		{collection: KV, name: "a key that is there twice", said: keys(9, "a@5=1 a@6=2"), want: stream.ErrInvalid, outcome: `key "a" is there twice`},
		{collection: KV, name: "a key outside the prefix", said: list(`[{"Key":"other/a","ModifyIndex":5}]`), want: stream.ErrInvalid, outcome: "one that begins with app/"},
		{collection: KV, name: "a value that is not base64", said: list(`[{"Key":"app/a","ModifyIndex":5,"Value":"?"}]`), want: stream.ErrInvalid, outcome: "base64"},
		{collection: KV, name: "half an answer", said: list(`[{"Key":"app/a","ModifyIndex":5},`), outcome: "EOF"},
		{collection: KV, name: "no list", said: list(`{"Key":"app/a"}`), want: stream.ErrInvalid, outcome: `begins with "{"`},
		{collection: KV, name: "an answer without an index", said: page{body: `[]`}, want: stream.ErrInvalid, outcome: "no X-Consul-Index"},
		{collection: KV, name: "a list larger than the maximum", said: keys(9, "a@5="+strings.Repeat("x", 3<<20)), outcome: "max_message_bytes"},
		{collection: KV, name: "a redirect", said: page{index: 9, status: http.StatusTemporaryRedirect}.with("Location", "http://elsewhere/"), outcome: "the answer is a redirect to http://elsewhere/"},
		{collection: KV, name: "a server that hangs", silent: true, want: stream.ErrStalled, outcome: "no answer within"},
		{collection: KV, name: "an error with a long text", said: page{status: http.StatusInternalServerError, body: strings.Repeat("a long text, ", 4000)}, outcome: "a long text, a long text"},
		{collection: Health, name: "an instance of no node", said: list(`[{"Node":"","Services":[{"ID":"a","Service":"a"}]}]`), want: stream.ErrInvalid, outcome: "node"},
		{collection: Health, name: "an instance that is there twice", said: list(`[{"Node":"n","Services":[{"ID":"a","Service":"a"},{"ID":"a","Service":"a"}]}]`), want: stream.ErrInvalid, outcome: `key "a/n/a" is there twice`},
		{collection: Services, name: "no object", said: list(`[]`), want: stream.ErrInvalid, outcome: `begins with "["`},
		{collection: Nodes, name: "a long name that is there twice", said: list(fmt.Sprintf(`[{"Node":%[1]q},{"Node":%[1]q}]`, long)), want: stream.ErrInvalid, outcome: "long-name-long-name"},
		{collection: Checks, name: "a check without an id", said: list(`[{"Node":"n"}]`), want: stream.ErrInvalid, outcome: "the name of a node, and an id"},
		{collection: Intentions, name: "an intention without an end", said: list(`[{"SourceName":"web"}]`), want: stream.ErrInvalid, outcome: "intention"},
	}
}

// TestScriptedFaultsOfQueries: a server whose answers are wrong is left with an error that says how, and nothing of
// the answer is served.
func TestScriptedFaultsOfQueries(t *testing.T) {
	for _, row := range httpFaults() {
		t.Run(row.collection+": "+row.name, func(t *testing.T) {
			f := newFakeHTTP()
			f.said, f.silent = row.said, row.silent
			c := Config{Resources: Resources{Collection: row.collection}, MaxMessageBytes: 2 << 20}
			if row.collection == KV {
				c.Prefix = "app/"
			}
			httpBubble(t, f, c, func(t *testing.T, _ *Queried, watch func() *running) {
				r := watch()
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				select {
				case <-r.ended:
				default:
					t.Fatalf("it goes on: %s", r.take())
				}
				if r.err == nil || row.want != nil && !errors.Is(r.err, row.want) || !strings.Contains(r.err.Error(), row.outcome) || len(r.err.Error()) > 2000 {
					t.Errorf("error %.600v, want one that is %v and has %q", r.err, row.want, row.outcome)
				}
				if served := r.take(); strings.Contains(served, "+") || strings.Contains(served, "=") {
					t.Errorf("it served %.300s", served)
				}
			})
			t.Logf(" scripted | consul %s | %s | refused: %s |", row.collection, row.name, row.outcome)
		})
	}
}
