package gateway

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// FuzzStream lets an upstream send anything. Watch returns, and calls of the
// sink keep the contract, except for what ingest checks.
func FuzzStream(f *testing.F) {
	for _, text := range []string{
		primed(), primed() + upsert("x", 3, "{}", "w@e-3") + remove("y", 4, "w@e-4") + goodbye("draining", 10),
		hello + status("priming", "slow", "") + beat + reset("w@e-0/1") + endOfSnapshot(1, 0, "w@e-1,v@f-2"),
		primed() + status("catching_up", "", "") + upsert("a", 5, "1", "w@e-5/9") + bookmark(9, "w@e-9"),
		hello + reset("w@e-0/9") + "event: upsert\r\ndata: {\"type\":\"upsert\"}\r\n\r\n",
	} {
		f.Add(text, uint64(0))
		f.Add(text, uint64(2))
	}
	f.Fuzz(func(t *testing.T, text string, resume uint64) {
		u, err := New(Config{URL: "http://gateway.test", MaxEventBytes: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		u.client.Transport = answer(text)
		from := stream.Resume{}
		if resume > 0 {
			from = stream.Resume{Epoch: "e", Revision: resume}
		}
		sink := &grammar{begun: resume > 0}
		_ = sourceOf(t, u, "w").Watch(t.Context(), from, sink)
		if sink.broken != nil {
			t.Error(sink.broken)
		}
	})
}

// answer is a server that answers every request with the same text.
type answer string

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(string(a))),
	}, nil
}

// grammar is a sink that checks the order of its calls.
type grammar struct {
	stream.PlainSink
	begun  bool // there is something to change
	broken error
}

func (g *grammar) must(ok bool, what string) error {
	if !ok && g.broken == nil {
		g.broken = errors.New(what)
	}
	return nil
}

func (g *grammar) Reset(epoch string) error {
	g.begun = true
	return g.must(epoch != "" && stream.CanonicalEpoch(epoch) == epoch, "reset in an epoch that cannot stand in a position")
}

func (g *grammar) Upsert(r stream.Resource) error {
	_, ok := stream.CompactJSON(r.Value)
	return g.must(g.begun && ok && r.Revision > 0, "upsert before reset, without a revision or of what is no JSON")
}

func (g *grammar) Delete(string, uint64) error { return g.must(g.begun, "delete before reset") }
func (g *grammar) Commit(uint64) error         { return g.must(g.begun, "commit before reset") }

func (g *grammar) Status(s stream.State, _ string) error {
	return g.must(s >= stream.Priming && s <= stream.Stale, "a status that no watch has")
}
