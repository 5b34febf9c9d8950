package changes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/client"
)

// recorder is a handler that keeps what it is told, and a state file in memory.
type recorder struct {
	changes []string
	records []Record
	fails   error // of the next change
}

func (r *recorder) Change(e client.Event) error {
	if r.fails != nil {
		return r.fails
	}
	r.changes = append(r.changes, strings.TrimSuffix(string(e.Type)+" "+e.Key+" "+string(e.Value), " "))
	return nil
}

func (r *recorder) Record(record Record) error {
	r.records = append(r.records, record)
	return nil
}

// expect compares the changes since it was called last.
func (r *recorder) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(r.changes, want) {
		t.Errorf("changes %q, want %q", r.changes, want)
	}
	r.changes = nil
}

// restarted returns the tracker of the next process.
func (r *recorder) restarted(t *testing.T, complete bool, watches ...string) *Tracker {
	t.Helper()
	k := NewKnown(watches, complete)
	for _, record := range r.records {
		if err := k.Apply(record); err != nil {
			t.Fatal(err)
		}
	}
	r.records = slices.Collect(k.Records())
	return NewTracker(k, r)
}

func hello() client.Event { return client.Event{Type: "hello"} }

func reset(reason client.Reason) client.Event {
	return client.Event{Type: "reset", Watch: "w", Reason: reason, ID: "w@e-0/1"}
}

func upsert(key string, revision int, value string) client.Event {
	return client.Event{Type: "upsert", Watch: "w", Resource: client.Resource{Key: key, Revision: fmt.Sprint(revision), Value: []byte(value)}}
}

func remove(key string, revision int) client.Event {
	return client.Event{Type: "delete", Watch: "w", Resource: client.Resource{Key: key, Revision: fmt.Sprint(revision)}}
}

func end(id string) client.Event {
	return client.Event{Type: "end_of_snapshot", Watch: "w", Resource: client.Resource{Revision: "99"}, ID: id}
}

// at gives an event an id.
func at(e client.Event, id string) client.Event {
	e.ID = id
	return e
}

func feed(t *testing.T, tracker *Tracker, events ...client.Event) {
	t.Helper()
	for _, e := range events {
		if err := tracker.Event(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheFirstSnapshotIsNoChange(t *testing.T) {
	r := &recorder{}
	tracker := r.restarted(t, false, "w")
	feed(t, tracker, hello(), reset("initial"), upsert("a", 1, "1"), upsert("b", 2, "2"), end("w@e-2"))
	r.expect(t)
	feed(t, tracker, at(upsert("a", 3, "3"), "w@e-3"), at(remove("b", 4), "w@e-4"))
	r.expect(t, "upsert a 3", "delete b")
}

func TestTheFirstSnapshotIsAChangeIfNothingCountsAsKnown(t *testing.T) {
	r := &recorder{}
	tracker := r.restarted(t, true, "w")
	feed(t, tracker, hello(), reset("initial"), upsert("a", 1, "1"), end("w@e-2"))
	r.expect(t, "upsert a 1")
}

func TestAnInterruptedFirstSnapshotIsForgotten(t *testing.T) {
	r := &recorder{}
	tracker := r.restarted(t, false, "w")
	feed(t, tracker, hello(), reset("initial"), at(upsert("gone", 1, "1"), "w@e-1/2"))
	tracker = r.restarted(t, false, "w")
	feed(t, tracker, hello(), reset("initial"), upsert("a", 2, "2"), end("w@e-2"), reset("expired"), upsert("a", 2, "2"), end("w@e-2"))
	r.expect(t)
}

// What comes again after a reconnect is no change, in particular a delete.
func TestRepetitionsAreNoChanges(t *testing.T) {
	r := &recorder{}
	tracker := r.restarted(t, true, "w")
	feed(t, tracker, hello(), reset("initial"), upsert("a", 1, "1"), upsert("b", 1, "1"), end("w@e-2"), at(remove("b", 3), "w@e-3"))
	r.expect(t, "upsert a 1", "upsert b 1", "delete b")
	feed(t, tracker, hello(), remove("b", 3), upsert("a", 1, "1"), end("w@e-3"))
	r.expect(t)
	feed(t, tracker, at(upsert("a", 4, "1"), "w@e-4"))
	r.expect(t, "upsert a 1") // the same value was written again
}

func TestAResetIsADifference(t *testing.T) {
	for reason, want := range map[client.Reason][]string{
		"expired":          {"upsert same-value 1", "upsert same-revision 2", "upsert new 1", "delete gone-1", "delete gone-2", "delete gone-10"},
		"ahead":            {"upsert same-value 1", "upsert same-revision 2", "upsert new 1", "delete gone-1", "delete gone-2", "delete gone-10"},
		"epoch_changed":    {"upsert same-revision 2", "upsert new 1", "delete gone-1", "delete gone-2", "delete gone-10"},
		"invalid_position": {"upsert same-revision 2", "upsert new 1", "delete gone-1", "delete gone-2", "delete gone-10"},
	} {
		t.Run(string(reason), func(t *testing.T) {
			r := &recorder{}
			tracker := r.restarted(t, false, "w")
			feed(t, tracker, hello(), reset("initial"), upsert("gone-10", 1, "1"), upsert("gone-2", 1, "1"), upsert("gone-1", 1, "1"),
				upsert("same", 2, "1"), upsert("same-value", 3, "1"), upsert("same-revision", 4, "1"), end("w@e-4"))
			feed(t, tracker, reset(reason), upsert("same", 2, "1"), upsert("same-value", 5, "1"), upsert("same-revision", 4, "2"), upsert("new", 6, "1"), end("w@f-6"))
			slices.Sort(want[len(want)-3:])
			want = append(want[:len(want)-3], "delete gone-1", "delete gone-10", "delete gone-2")
			r.expect(t, want...)
		})
	}
}

// A snapshot of another epoch that was interrupted leaves revisions of both, also if the next
// snapshot would keep the order.
func TestRevisionsOfTwoEpochsAreNotCompared(t *testing.T) {
	r := &recorder{}
	tracker := r.restarted(t, false, "w")
	feed(t, tracker, hello(), reset("initial"), upsert("a", 7, "1"), upsert("b", 8, "1"), end("w@e-8"))
	feed(t, tracker, reset("epoch_changed"), at(upsert("a", 1, "1"), "w@f-1/2"))
	feed(t, tracker, hello(), reset("expired"), upsert("a", 3, "1"), upsert("b", 4, "1"), end("w@f-4"))
	r.expect(t)
	feed(t, tracker, reset("expired"), upsert("a", 5, "1"), upsert("b", 4, "1"), end("w@f-5"))
	r.expect(t, "upsert a 1")
}

// A key may have any name, and one in base64 is another one than its text.
func TestKeysInBase64(t *testing.T) {
	r := &recorder{}
	tracker := r.restarted(t, false, "w")
	encoded := upsert("//4=", 1, "1")
	encoded.KeyEncoding = "base64"
	feed(t, tracker, hello(), reset("initial"), encoded, upsert("//4=", 1, "1"), upsert("<&>", 1, "1"), end("w@e-4"))
	tracker = r.restarted(t, false, "w")
	seen := []string{}
	tracker.handler = handler(func(e client.Event) error {
		seen = append(seen, string(e.Data))
		return nil
	})
	feed(t, tracker, hello(), reset("expired"), upsert("//4=", 1, "1"), end("w@e-5"))
	want := []string{
		`{"type":"delete","watch":"w","key":"//4=","revision":"99","key_encoding":"base64"}`,
		`{"type":"delete","watch":"w","key":"<&>","revision":"99"}`,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

// handler handles changes only.
type handler func(client.Event) error

func (h handler) Change(e client.Event) error { return h(e) }
func (h handler) Record(Record) error         { return nil }

func TestAFailedChangeComesAgain(t *testing.T) {
	r := &recorder{}
	tracker := r.restarted(t, true, "w")
	feed(t, tracker, hello(), reset("initial"), end("w@e-1"))
	r.fails = errors.New("no")
	if err := tracker.Event(at(upsert("a", 2, "2"), "w@e-2")); !errors.Is(err, r.fails) {
		t.Fatalf("got %v", err)
	}
	r.fails = nil
	tracker = r.restarted(t, true, "w")
	if got := tracker.known.Position(); got != "w@e-1" {
		t.Errorf("the position is %q", got)
	}
	feed(t, tracker, hello(), upsert("a", 2, "2"), end("w@e-2"))
	r.expect(t, "upsert a 2")
}

// There is no position while a snapshot is not complete, or a later process could continue where
// it does not know what the snapshot had before.
func TestThereIsNoPositionInASnapshot(t *testing.T) {
	r := &recorder{}
	tracker := r.restarted(t, false, "w")
	for i, step := range []struct {
		event client.Event
		want  string
	}{
		{hello(), ""}, {reset("initial"), ""}, {at(upsert("a", 1, "1"), "w@e-1/2"), ""}, {end("w@e-2"), "w@e-2"},
		{at(upsert("a", 3, "1"), "w@e-3"), "w@e-3"}, {reset("expired"), ""}, {at(upsert("a", 3, "1"), "w@e-3/4"), ""}, {end("w@e-4"), "w@e-4"},
	} {
		feed(t, tracker, step.event)
		if got := r.restarted(t, false, "w").known.Position(); got != step.want {
			t.Errorf("after event %d: position %q, want %q", i, got, step.want)
		}
	}
}

func TestSeveralWatchesKeepTheirOrder(t *testing.T) {
	r := &recorder{}
	tracker := r.restarted(t, true, "w", "x")
	of := func(watch string, e client.Event) client.Event {
		e.Watch = watch
		return e
	}
	feed(t, tracker, hello(), reset("initial"), of("x", reset("initial")), end("w@e-1"))
	if got := tracker.known.Position(); got != "" {
		t.Errorf("position %q although x is not complete", got)
	}
	feed(t, tracker, of("x", end("w@e-1,x@e-1")))
	var events []client.Event
	var want []string
	for i := range 20 {
		events = append(events, of([]string{"w", "x"}[i%2], upsert(fmt.Sprint(i), 2+i, "1")))
		want = append(want, fmt.Sprintf("upsert %d 1", i))
	}
	events[19].ID = "w@e-20,x@e-21"
	feed(t, tracker, events...)
	r.expect(t, want...)
	if got := tracker.known.Position(); got != "w@e-20,x@e-21" {
		t.Errorf("position %q", got)
	}
}

func TestRecordsThatAreNone(t *testing.T) {
	key := "a"
	for _, record := range []Record{{}, {Watch: "other", Complete: true}, {Watch: "w"}, {Watch: "w", Key: &key, Hash: "12"}, {Watch: "w", Key: &key, Hash: strings.Repeat("x", 32)}} {
		if err := NewKnown([]string{"w"}, false).Apply(record); err == nil {
			t.Errorf("%+v was accepted", record)
		}
	}
}

func TestARevisionThatIsNoNumber(t *testing.T) {
	tracker := (&recorder{}).restarted(t, true, "w")
	e := at(upsert("a", 1, "1"), "w@e-1")
	e.Revision = "-1"
	if err := tracker.Event(e); err == nil || !strings.Contains(err.Error(), `"-1"`) {
		t.Errorf("got %v", err)
	}
}

// TestRandomHistories compares what a handler has seen with the upstream, over random changes,
// lost connections, restarts, resets and epochs: after each complete snapshot or catch-up they
// are the same, and nothing was seen twice unless the process ended in between.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(500) {
		h := &history{rng: rand.New(rand.NewPCG(seed, 1)), upstream: map[string]versioned{}, seen: map[string]string{}}
		h.run(t)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type versioned struct {
	revision int
	value    string
}

// history is an upstream, a gateway that serves it, and the processes that follow it.
type history struct {
	rng      *rand.Rand
	upstream map[string]versioned
	gone     map[string]int // deletes since the epoch began
	revision int
	epoch    int

	recorder recorder
	stored   int // of the records when the process began
	tracker  *Tracker
	seen     map[string]string // as the handler has seen it
	last     client.Event      // of the handler
	repeats  bool              // the process has ended: the last change may come twice
}

func (h *history) Change(e client.Event) error {
	if !h.repeats && e.Type == h.last.Type && e.Key == h.last.Key && e.Revision == h.last.Revision && string(e.Value) == string(h.last.Value) {
		return fmt.Errorf("%s %s at %s was seen twice", e.Type, e.Key, e.Revision)
	}
	h.last, h.repeats = e, false
	if e.Type == "delete" {
		delete(h.seen, e.Key)
	} else {
		h.seen[e.Key] = string(e.Value)
	}
	return nil
}

func (h *history) Record(r Record) error { return h.recorder.Record(r) }

func (h *history) run(t *testing.T) {
	h.restart(t)
	h.gone = map[string]int{}
	for range 60 {
		switch n := h.rng.IntN(20); {
		case n == 0:
			h.epoch++
			h.revision, h.gone = 0, map[string]int{}
			for key, v := range h.upstream {
				h.revision++
				h.upstream[key] = versioned{h.revision, v.value}
			}
		case n < 4:
			h.restart(t)
		case n < 8:
			h.connect(t)
		default:
			h.change()
		}
	}
	h.complete(t)
}

// restart begins a process. It may lose the records after the last pending one.
func (h *history) restart(t *testing.T) {
	t.Helper()
	if h.rng.IntN(2) == 0 {
		for n := len(h.recorder.records); n > h.stored && !h.recorder.records[n-1].Pending && h.rng.IntN(3) > 0; n-- {
			h.recorder.records = h.recorder.records[:n-1]
		}
	}
	h.repeats = true
	h.tracker = h.recorder.restarted(t, true, "w")
	h.stored = len(h.recorder.records)
	h.tracker.handler = h
}

func (h *history) change() {
	key := fmt.Sprint(h.rng.IntN(6))
	h.revision++
	if _, had := h.upstream[key]; had && h.rng.IntN(3) == 0 {
		delete(h.upstream, key)
		h.gone[key] = h.revision
		return
	}
	delete(h.gone, key)
	h.upstream[key] = versioned{h.revision, fmt.Sprint(h.rng.IntN(3))}
}

// connect serves a snapshot or a catch-up, maybe to a place where it is cut off.
func (h *history) connect(t *testing.T) {
	t.Helper()
	events := h.stream()
	cut := h.rng.IntN(2 * len(events))
	feed(t, h.tracker, covered(events[:min(cut, len(events))])...)
}

// covered returns what the client hands over of a connection: not what came after the last id.
func covered(events []client.Event) []client.Event {
	for len(events) > 0 && events[len(events)-1].ID == "" {
		events = events[:len(events)-1]
	}
	return events
}

// complete serves all, and compares.
func (h *history) complete(t *testing.T) {
	t.Helper()
	feed(t, h.tracker, h.stream()...)
	if len(h.seen) != len(h.upstream) {
		t.Errorf("seen %v, upstream %v", h.seen, h.upstream)
	}
	for key, v := range h.upstream {
		if h.seen[key] != v.value {
			t.Errorf("%s was seen as %q, and is %q", key, h.seen[key], v.value)
		}
	}
}

// stream returns what a gateway sends to the position that is known.
func (h *history) stream() []client.Event {
	epoch, since := 0, 0
	position := h.tracker.known.Position()
	resumes := false
	if n, _ := fmt.Sscanf(position, "w@%d-%d", &epoch, &since); n == 2 && epoch == h.epoch && h.rng.IntN(4) > 0 {
		resumes = true
	}
	events := []client.Event{hello()}
	if !resumes {
		reason := client.ResetEpochChanged
		switch {
		case position == "":
			reason = client.ResetInitial
		case epoch == h.epoch:
			reason = client.ResetExpired
		}
		events = append(events, reset(reason))
		since = 0
	} else {
		for key, revision := range h.gone {
			if revision > since {
				events = append(events, remove(key, revision))
			}
		}
	}
	var changed []string
	for key, v := range h.upstream {
		if v.revision > since {
			changed = append(changed, key)
		}
	}
	slices.SortFunc(changed, func(a, b string) int { return h.upstream[a].revision - h.upstream[b].revision })
	for _, key := range changed {
		e := upsert(key, h.upstream[key].revision, h.upstream[key].value)
		if h.rng.IntN(3) == 0 && !resumes {
			e.ID = fmt.Sprintf("w@%d-%d/%d", h.epoch, h.upstream[key].revision, h.revision)
		}
		events = append(events, e)
	}
	return append(events, end(fmt.Sprintf("w@%d-%d", h.epoch, h.revision)))
}
