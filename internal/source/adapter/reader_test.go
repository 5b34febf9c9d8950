package adapter

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// eventRecorder is a Sink that records its calls.
type eventRecorder struct {
	stream.PlainSink
	lines []string
}

func (r *eventRecorder) say(format string, args ...any) error {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
	return nil
}

func (r *eventRecorder) Reset(epoch string) error { return r.say("reset %s", epoch) }
func (r *eventRecorder) Upsert(x stream.Resource) error {
	return r.say("upsert %s %d", x.Key, x.Revision)
}
func (r *eventRecorder) Delete(key string, revision uint64) error {
	return r.say("delete %s %d", key, revision)
}
func (r *eventRecorder) Commit(revision uint64) error { return r.say("commit %d", revision) }
func (r *eventRecorder) Status(s stream.State, reason string) error {
	return r.say("status %v %s", s, reason)
}
func (r *eventRecorder) RaiseHorizon(revision uint64) error { return r.say("horizon %d", revision) }
func (r *eventRecorder) Conflated()                         { _ = r.say("conflated") }
func (r *eventRecorder) Mark()                              {}
func (r *eventRecorder) Rewind() error                      { return r.say("rewind") }

// again is another connection.
var again = Event{Type: 99}

func put(key string, revision uint64, at string) Event {
	return Event{Type: Upsert, Resource: stream.Resource{Key: key, Revision: revision, Value: []byte("1")}, Position: at}
}

func gone(key string, revision uint64, at string) Event {
	return Event{Type: Delete, Resource: stream.Resource{Key: key, Revision: revision}, Position: at}
}

func end(revision, count uint64, at string) Event {
	return Event{Type: EndOfSnapshot, Revision: revision, Count: count, Position: at}
}

func fresh(state stream.State, at string) Event {
	return Event{Type: Status, State: state, Position: at}
}

// play feeds events to a Reader.
func play(c ReaderConfig, from stream.Position, events []Event) (calls string, err error) {
	sink := &eventRecorder{}
	c.Sink, c.Watch, c.Where = sink, "w", `there, watch "w"`
	r := NewReader(c, from)
	_, _, err = r.Begin()
	for _, e := range events {
		switch {
		case err != nil:
		case e.Type == again.Type:
			var at stream.Position
			at, _, err = r.Begin()
			_ = sink.say("again at %v", at)
		default:
			err = r.Receive(e, nil)
		}
	}
	return strings.Join(sink.lines, ", "), err
}

func TestReader(t *testing.T) {
	three := stream.Position{Watch: "w", Epoch: "e", Upserts: 3, AsOf: 3}
	unnamed := ReaderConfig{Unnamed: "own"}
	for name, c := range map[string]struct {
		config ReaderConfig
		from   stream.Position
		events []Event
		want   string
	}{
		"a snapshot, then a transaction": {
			events: []Event{
				{Type: Reset, Position: "w@e-0/3"}, put("a", 3, ""), end(3, 1, "w@e-3"),
				put("a", 4, ""), gone("b", 4, "w@e-4"),
			},
			want: "reset e, upsert a 3, commit 3, upsert a 4, delete b 4, commit 4",
		},
		"the next connection completes a snapshot": {
			events: []Event{
				{Type: Reset, Position: "w@e-0/3"}, put("a", 1, "w@e-1/3"), put("b", 2, ""), again,
				put("b", 2, ""), put("c", 3, ""), end(3, 3, "w@e-3"),
			},
			want: "reset e, upsert a 1, upsert b 2, rewind, again at w@e-1/3, upsert b 2, upsert c 3, commit 3",
		},
		"the next connection drops half a transaction": {
			from:   three,
			events: []Event{end(3, 0, "w@e-3"), put("a", 4, ""), again, end(3, 0, "w@e-3"), put("a", 4, "w@e-4")},
			want: "commit 3, status in_sync , upsert a 4, rewind, again at w@e-3, conflated, commit 3," +
				" status in_sync , upsert a 4, commit 4",
		},
		"a stale watch is in sync after the next connection": {
			from:   three,
			events: []Event{fresh(stream.Stale, ""), end(3, 0, ""), again, end(3, 0, "")},
			want:   "status stale stale, commit 3, again at w@e-3, commit 3, status in_sync ",
		},
		"a catch-up ends with a bookmark": {
			from: three,
			events: []Event{
				end(3, 0, "w@e-3"), fresh(stream.CatchingUp, ""), gone("a", 8, "w@e-3/9"), put("b", 9, "w@e-9"),
				{Type: Bookmark, Revision: 9, Position: "w@e-9"}, put("b", 10, "w@e-10"),
			},
			want: "commit 3, status in_sync , delete a 8, upsert b 9, conflated, commit 9, upsert b 10, commit 10",
		},
		"changes that may lack values follow a bookmark that says so": {
			from: three,
			events: []Event{
				end(3, 0, "w@e-3"), {Type: Bookmark, Revision: 3, Conflated: 5}, put("a", 4, "w@e-4"), put("b", 5, "w@e-5"),
				put("c", 6, "w@e-6"),
			},
			want: "commit 3, status in_sync , commit 3, upsert a 4, conflated, commit 4, upsert b 5, conflated, commit 5," +
				" upsert c 6, commit 6",
		},
		"a new snapshot has all values": {
			from: three,
			events: []Event{
				end(3, 0, "w@e-3"), {Type: Bookmark, Revision: 3, Conflated: 5}, {Type: Reset, Position: "w@f-0/3"}, put("a", 3, ""),
				end(3, 1, "w@f-3"), put("b", 4, "w@f-4"),
			},
			want: "commit 3, status in_sync , commit 3, reset f, upsert a 3, commit 3, upsert b 4, commit 4",
		},
		"the id from before a catch-up does not cover its deletes": {
			from: three,
			events: []Event{
				end(3, 0, "w@e-3"), fresh(stream.CatchingUp, ""), gone("a", 3, "w@e-3"), again, put("z", 5, ""), end(5, 1, "w@e-5"),
			},
			want: "commit 3, status in_sync , delete a 3, rewind, again at w@e-3, upsert z 5, conflated, commit 5, status in_sync ",
		},
		"nor does the id that a resume began with": {
			from:   three,
			events: []Event{gone("a", 3, "w@e-3"), again, put("z", 5, ""), end(5, 1, "w@e-5")},
			want:   "delete a 3, rewind, again at w@e-3, upsert z 5, conflated, commit 5, status in_sync ",
		},
		"a catch-up ends with end_of_snapshot": {
			from: three,
			events: []Event{
				end(3, 0, "w@e-3"), fresh(stream.CatchingUp, ""), put("b", 9, "w@e-9"), end(9, 1, "w@e-9"), put("b", 10, "w@e-10"),
			},
			want: "commit 3, status in_sync , upsert b 9, commit 9, upsert b 10, commit 10",
		},
		"a bookmark within a catch-up ends nothing": {
			from: three,
			events: []Event{
				end(3, 0, "w@e-3"), fresh(stream.CatchingUp, ""), put("a", 5, "w@e-5/9"),
				{Type: Bookmark, Revision: 9, Horizon: 12, Position: "w@e-5/9"}, put("b", 9, ""), end(12, 2, "w@e-12"),
			},
			want: "commit 3, status in_sync , upsert a 5, horizon 12, upsert b 9, commit 12",
		},
		"a position without an event is progress": {
			from:   three,
			events: []Event{end(3, 0, "w@e-3"), {Position: "w@e-3"}, {Position: "w@e-5"}, {Position: "w@e-5"}},
			want:   "commit 3, status in_sync , commit 5",
		},
		"without positions each change is a transaction": {
			config: unnamed,
			events: []Event{{Type: Reset}, put("a", 3, ""), end(3, 1, ""), put("a", 4, ""), gone("a", 0, "")},
			want:   "reset own, upsert a 3, commit 3, upsert a 4, commit 4, delete a 0, commit 4",
		},
		"a late position begins the snapshot again": {
			config: unnamed,
			events: []Event{{Type: Reset}, put("a", 2, ""), put("b", 3, "w@e-2/3"), end(3, 2, "w@e-3")},
			want:   "reset own, upsert a 2, reset e, upsert a 2, upsert b 3, commit 3",
		},
		"keys outside of the prefix are left out, and are progress": {
			config: ReaderConfig{Prefix: "a"},
			from:   three,
			events: []Event{end(3, 0, "w@e-3"), put("b", 4, "w@e-4"), put("a", 5, "w@e-5")},
			want:   "commit 3, status in_sync , commit 4, upsert a 5, commit 5",
		},
		"epochs have other names here": {
			config: ReaderConfig{Enter: strings.ToUpper},
			events: []Event{{Type: Reset, Position: "w@e-0/3"}, end(3, 0, "w@e-3")},
			want:   "reset E, commit 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := play(c.config, c.from, c.events)
			if err != nil || got != c.want {
				t.Errorf("calls\n got %s\nwant %s\nerror %v", got, c.want, err)
			}
		})
	}
}

// Another part of the watch, which has a revision order of its own, begins with a reset, wherever the
// stream is.
func TestReaderOfASwitch(t *testing.T) {
	at := stream.Position{Watch: "w", Epoch: "e", Upserts: 1, AsOf: 1}
	for name, c := range map[string]struct {
		from   stream.Position
		events []Event
		want   string
	}{
		"live": {stream.Position{}, []Event{
			{Type: Reset, Position: "w@e-0/1"}, put("a", 1, ""), end(1, 1, "w@e-1"),
		}, "reset e, upsert a 1, commit 1, status stale stale, reset f, upsert b 1, commit 1"},
		"in a snapshot": {stream.Position{}, []Event{
			{Type: Reset, Position: "w@e-0/2"}, put("a", 1, "w@e-1/2"),
		}, "reset e, upsert a 1, status stale stale, reset f, upsert b 1, commit 1"},
		"among the deletes of a catch-up": {at, []Event{gone("a", 1, "")}, "delete a 1, status stale stale, reset f, upsert b 1, commit 1"},
	} {
		events := append(c.events, fresh(stream.Stale, ""), Event{Type: Reset, Position: "w@f-0/1"}, put("b", 1, ""), end(1, 1, "w@f-1"))
		got, err := play(ReaderConfig{}, c.from, events)
		if got != c.want || err != nil {
			t.Errorf("%s: calls %s, error %v", name, got, err)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		events []Event
		want   string
	}{
		"a change before reset":      {[]Event{put("a", 1, "")}, `event 1: a change of key "a" before reset: want reset first`},
		"an end before reset":        {[]Event{end(1, 0, "")}, "event 1: end_of_snapshot before reset: want reset first"},
		"a reset without a position": {[]Event{{Type: Reset}}, "event 1: reset without a position: want an id that names the epoch"},
		"too few resources":          {[]Event{{Type: Reset, Position: "w@e-0/1"}, end(1, 1, "w@e-1")}, "event 2: end_of_snapshot counts 1 resources, 0 came"},
		"another watch":              {[]Event{{Type: Reset, Position: "v@e-0/1"}}, `event 1: position "v@e-0/1": want one of watch "w"`},
		"another epoch":              {[]Event{{Type: Reset, Position: "w@e-0/1"}, end(1, 0, "w@f-1")}, `event 2: position "w@f-1": want epoch "e", or a reset before`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := play(ReaderConfig{}, stream.Position{}, c.events)
			if want := `there, watch "w", ` + c.want; !errors.Is(err, stream.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("error\n got %v\nwant %s", err, want)
			}
		})
	}
}

// TestUndecodable: the error of an event that could not be read names it.
func TestUndecodable(t *testing.T) {
	r := NewReader(ReaderConfig{Sink: &eventRecorder{}, Watch: "w", Where: "there"}, stream.Position{})
	if err := r.Receive(Event{}, errors.New("noise")); !errors.Is(err, stream.ErrInvalid) || !strings.Contains(err.Error(), "there, event 1: noise") {
		t.Errorf("error %v", err)
	}
}

// forgetful is a Sink that cannot go back.
type forgetful struct{ stream.Sink }

func (forgetful) Rewind() error { return stream.PlainSink{}.Rewind() }

// TestSinkThatCannotRewind ends the call instead of showing half a transaction.
func TestSinkThatCannotRewind(t *testing.T) {
	r := NewReader(ReaderConfig{Sink: forgetful{&eventRecorder{}}, Watch: "w", Where: "there"}, stream.Position{Watch: "w", Epoch: "e", Upserts: 3, AsOf: 3})
	if _, resumes, err := r.Begin(); !resumes || err != nil {
		t.Fatalf("resumes is %t, error %v", resumes, err)
	}
	if err := r.Receive(put("a", 4, ""), nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Begin(); err == nil || !strings.HasPrefix(err.Error(), "there: half a transaction was received") {
		t.Errorf("error %v", err)
	}
}

// charged is a recorder of the bytes held by a source.
type charged struct {
	eventRecorder
	held, most int64
}

func (c *charged) Charge(bytes int64) {
	c.held += bytes
	c.most = max(c.most, c.held)
}

// TestRepeatedChangesAreCharged: changes of a snapshot whose epoch is unknown are
// counted while they are kept.
func TestRepeatedChangesAreCharged(t *testing.T) {
	for name, last := range map[string]Event{
		"a position":          put("z", 9, "w@e-9"),
		"the end":             end(9, 2, ""),
		"another reset":       {Type: Reset},
		"a reset with a name": {Type: Reset, Position: "w@e-0/9"},
	} {
		sink := &charged{}
		r := NewReader(ReaderConfig{Sink: sink, Watch: "w", Where: "here", Unnamed: "own"}, stream.Position{})
		for _, e := range []Event{{Type: Reset}, put("a", 1, ""), put("b", 2, ""), last} {
			if err := r.Receive(e, nil); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if sink.held != 0 || sink.most != 2*saidCost {
			t.Errorf("%s: %d bytes are held, and at most %d were; want 0 and %d", name, sink.held, sink.most, 2*saidCost)
		}
	}
}
