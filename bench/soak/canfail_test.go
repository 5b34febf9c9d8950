//go:build servers

package soak

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/bench/internal/received"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// These tests run the checks on failures, since otherwise they could pass
// forever.

func TestGrowthIsDetected(t *testing.T) {
	flat, rising := []sample{}, []sample{}
	for i := range 40 {
		flat = append(flat, sample{pss: 100 << 20, heap: 20 << 20, goroutines: 50 + i%3, subscribers: 900 + i, descriptors: 950 + i})
		rising = append(rising, sample{pss: int64(100+2*i) << 20, heap: 20 << 20, goroutines: 50 + 10*i, subscribers: 900, descriptors: 950 + 20*i})
	}
	if found := grown(flat); found != nil {
		t.Errorf("of flat samples: %v", found)
	}
	if found := grown(rising); len(found) != 3 {
		t.Errorf("found %v, want PSS, goroutines and descriptors", found)
	}
}

func TestLeaksAreDetected(t *testing.T) {
	before := sample{heap: 5 << 20, goroutines: 30, descriptors: 14}
	if found := kept(before, sample{heap: 46 << 20, cached: 32 << 20, goroutines: 31, descriptors: 14}); found != nil {
		t.Errorf("found %v", found)
	}
	if found := kept(before, sample{subscribers: 1, heap: 50 << 20, goroutines: 60, descriptors: 60}); len(found) != 4 {
		t.Errorf("found %v, want all four", found)
	}
}

// A stream that ends in another way than planned is a failure, if it was read.
func TestWrongEndsAreDetected(t *testing.T) {
	s := &subscriber{name: "s"}
	for _, c := range []struct {
		err    error
		visit  visit
		failed bool
	}{
		{errHungUp, visit{}, false},
		{errGoodbye, visit{}, false},
		{io.ErrUnexpectedEOF, visit{}, true},
		{io.ErrUnexpectedEOF, visit{reads: time.Second}, false},
		{errWrong, visit{reads: time.Second}, true},
		{errRefused, visit{narrow: true}, true},
	} {
		totals := newTotals()
		if totals.ended(s, c.visit, c.err); totals.err() != nil != c.failed {
			t.Errorf("%v of %+v: %v, want failed %t", c.err, c.visit, totals.err(), c.failed)
		}
	}
}

// sseText is a stream of one watch: a snapshot, a transaction of two keys, and an
// event that was cut off.
const sseText = `retry: 1000

event: hello
data: {"type":"hello","heartbeat_ms":5000,"watches":[{"watch":"w","mode":"snapshot"}]}

event: reset
data: {"type":"reset","watch":"w","reason":"initial"}
id: w@e-0/2

event: upsert
data: {"type":"upsert","watch":"w","key":"a","revision":"2","value":1}

event: end_of_snapshot
data: {"type":"end_of_snapshot","watch":"w","revision":"2","count":1}
id: w@e-2

: heartbeat

event: upsert
data: {"type":"upsert","watch":"w","key":"a","revision":"3","value":2}

event: upsert
data: {"type":"upsert","watch":"w","key":"b","revision":"3","value":3}
id: w@e-3

event: upsert
data: {"type":"upsert","watch":"w","key":"b","revision":"4","value":4}
id: w@e-4
`

// ndjsonText is the same.
func ndjsonText() string {
	var out strings.Builder
	for line := range strings.Lines(sseText) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			out.WriteString(data)
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			out.WriteString(`{"type":"position","id":"` + strings.TrimSpace(id) + "\"}\n")
		}
	}
	return strings.TrimSuffix(out.String(), "\n") // the last line is cut off
}

// collectionOfText is the upstream's history for these texts, plus two more
// transactions.
func collectionOfText() *collection {
	c := &collection{watch: "w", truth: streamtest.NewTruth("e", 1), largest: 1, rate: 1, said: newFreshness(), state: map[string]bool{}}
	c.note(2, []write{{"a", []byte("1")}})
	c.note(3, []write{{"a", []byte("2")}, {"b", []byte("3")}})
	c.note(4, []write{{"b", []byte("4")}})
	return c
}

// heard reads a text and returns the resulting track of a subscriber.
func heard(t *testing.T, text string, ndjson bool, of *part) *track {
	t.Helper()
	s := &subscriber{run: &run{totals: newTotals()}, left: -1}
	s.tracks = []*track{{of: collectionOfText(), client: "s", part: of, held: streamtest.State{}}}
	s.tracks[0].open(false)
	if err := s.read(received.New(strings.NewReader(text), ndjson)); err == nil || errors.Is(err, errGoodbye) {
		t.Fatalf("the stream ended with %v: want a missing goodbye", err)
	}
	return s.tracks[0]
}

func TestTracksAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		ndjson bool
		says   string
	}{
		"right":            {sseText, false, ""},
		"right, as NDJSON": {ndjsonText(), true, ""},
		"half of a transaction": {strings.Replace(sseText, `event: upsert
data: {"type":"upsert","watch":"w","key":"a","revision":"3","value":2}

`, "", 1), false, "broke"},
		"a value that never existed": {strings.Replace(sseText, `"value":3`, `"value":9`, 1), false, "never was"},
		"a snapshot without a key":   {strings.Replace(sseText, `"key":"a","revision":"2"`, `"key":"x","revision":"2"`, 1), false, "broke Consistent"},
	} {
		t.Run(name, func(t *testing.T) {
			track := heard(t, c.text, c.ndjson, whole)
			err := track.check(track.close(false), false)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// viewText is a stream of the resources with a value of more than 1, which has a place for
// the name of the order.
const viewText = `event: reset
data: {"type":"reset","watch":"w","reason":"initial"}
id: w@EPOCH-0/2

event: end_of_snapshot
data: {"type":"end_of_snapshot","watch":"w","revision":"2","count":0}
id: w@EPOCH-2

event: upsert
data: {"type":"upsert","watch":"w","key":"a","revision":"3","value":2}

event: upsert
data: {"type":"upsert","watch":"w","key":"b","revision":"3","value":3}
id: w@EPOCH-3

event: upsert
data: {"type":"upsert","watch":"w","key":"b","revision":"4","value":4}
id: w@EPOCH-4

event: delete
data: {"type":"delete","watch":"w","key":"a","revision":"5"}
id: w@EPOCH-5

`

func TestTracksOfViewsAreChecked(t *testing.T) {
	large := newPart(view.Params{Filter: "value > 1"})
	text := strings.ReplaceAll(viewText, "EPOCH", large.definition.Epoch("e"))
	for name, c := range map[string]struct{ text, says string }{
		"right": {text, ""},
		"a resource that is not in the view": {strings.Replace(text, `event: end_of_snapshot
data: {"type":"end_of_snapshot","watch":"w","revision":"2","count":0}`, `event: upsert
data: {"type":"upsert","watch":"w","key":"a","revision":"2","value":1}

event: end_of_snapshot
data: {"type":"end_of_snapshot","watch":"w","revision":"2","count":1}`, 1), "broke"},
		"a resource that has left the view": {strings.Replace(text, `event: delete
data: {"type":"delete","watch":"w","key":"a","revision":"5"}
`, `event: bookmark
data: {"type":"bookmark","watch":"w","revision":"5"}
`, 1), "broke"},
		"another order": {strings.ReplaceAll(viewText, "EPOCH", "e"), "broke"},
	} {
		t.Run(name, func(t *testing.T) {
			track := heard(t, c.text, false, large)
			track.of.note(5, []write{{"a", []byte("0")}})
			err := track.check(track.close(false), false)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// Events after an id are held, and are not part of the state at the id.
func TestTracksResumeFromTheirLastID(t *testing.T) {
	track := heard(t, sseText[:strings.Index(sseText, `id: w@e-3`)], false, whole)
	first := track.close(false)
	if n := len(first.Flushes); !first.Flushes[n-1].Cut || first.Flushes[n-1].Mark != nil {
		t.Errorf("the last flush is %+v, want it cut off", first.Flushes[n-1])
	}
	track.open(false)
	c := track.connection
	if c.From.Position.String() != "w@e-2" || len(c.From.State) != 1 || c.Begin["a"].Revision != 3 {
		t.Errorf("it resumes from %v with %v, %v", c.From.Position, c.From.State, c.Begin)
	}
}

func TestFreshnessIsInOrder(t *testing.T) {
	f := newFreshness()
	began := f.said[0].At
	for _, s := range []struct {
		second int
		state  stream.State
	}{{5, stream.InSync}, {3, stream.Stale}, {3, stream.Stale}, {4, stream.Resyncing}, {4, stream.CatchingUp}} {
		f.add(stream.Event{Type: stream.StatusChange, State: s.state, Since: began.Add(time.Duration(s.second) * time.Second)})
	}
	want := []streamtest.Freshness{{At: began, Fresh: true}, {At: began.Add(3 * time.Second)}, {At: began.Add(5 * time.Second), Fresh: true}}
	if got := f.all(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
