package grpc

import (
	"errors"
	"slices"
	"strings"
	"testing"

	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/protobuf/encoding/protowire"
)

var errSink = errors.New("the sink refuses")

// follow feeds events to a reader and returns its calls, and its error.
func follow(t *testing.T, c Config, resume stream.Resume, sink *calls, events ...*message) error {
	t.Helper()
	c.Address, c.Watch = "upstream:1", "services"
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(s, resume, sink)
	for i, m := range events {
		if err := r.receive(m); err != nil {
			if i != len(events)-1 {
				t.Fatalf("event %d of %d: %v", i+1, len(events), err)
			}
			return err
		}
	}
	return nil
}

func TestReaderCalls(t *testing.T) {
	const fallback = "f8b4bc22d596" // of upstream:1, services and no prefix
	tests := map[string]struct {
		config Config
		resume stream.Resume
		events []*message
		want   string
	}{
		"snapshot, then changes, without positions": {
			events: []*message{
				reset(), upsert("a", 3, "1"), upsert("b", 2, "2"), endOfSnapshot(3, 2),
				upsert("a", 4, "3"), remove("b", 5),
			},
			want: `reset FALLBACK, upsert "a" 3 1, upsert "b" 2 2, commit 3,` +
				` upsert "a" 4 3, commit 4, delete "b" 5, commit 5`,
		},
		"empty collection": {
			events: []*message{reset(), endOfSnapshot(0, 0)},
			want:   `reset FALLBACK, commit 0`,
		},
		"delete without a revision of its own": {
			events: []*message{reset(), endOfSnapshot(7, 0), remove("a", 0), remove("b", 3)},
			want:   `reset FALLBACK, commit 7, delete "a" 0, commit 7, delete "b" 3, commit 7`,
		},
		"the epoch comes with reset": {
			events: []*message{
				at("services@e1-0/3", reset()), upsert("a", 3, "1"),
				at("services@e1-3", endOfSnapshot(3, 1)),
			},
			want: `reset e1, upsert "a" 3 1, commit 3`,
		},
		"the epoch comes in the middle of the snapshot": {
			events: []*message{
				reset(), upsert("a", 1, "1"), remove("a", 0), at("services@e1-2/3", upsert("b", 2, "2")),
				upsert("c", 3, "3"), at("services@e1-3", endOfSnapshot(3, 2)),
			},
			want: `reset FALLBACK, upsert "a" 1 1, delete "a" 0,` +
				` reset e1, upsert "a" 1 1, delete "a" 0, upsert "b" 2 2, upsert "c" 3 3, commit 3`,
		},
		"the epoch comes with end_of_snapshot": {
			events: []*message{reset(), upsert("a", 3, "1"), at("services@e1-3", endOfSnapshot(3, 1))},
			want:   `reset FALLBACK, upsert "a" 3 1, reset e1, upsert "a" 3 1, commit 3`,
		},
		"nothing is committed before end_of_snapshot": {
			events: []*message{reset(), upsert("a", 3, "1"), upsert("b", 3, "1")},
			want:   `reset FALLBACK, upsert "a" 3 1, upsert "b" 3 1`,
		},
		"a position in a snapshot ends nothing": {
			events: []*message{at("services@e1-0/3", reset()), at("services@e1-3", upsert("a", 3, "1"))},
			want:   `reset e1, upsert "a" 3 1`,
		},
		"transactions end at plain positions": {
			events: []*message{
				reset(), at("services@e1-3", endOfSnapshot(3, 0)),
				upsert("a", 4, "1"), at("services@e1-4", upsert("b", 4, "1")),
				remove("a", 5), at("services@e1-5", remove("b", 5)),
			},
			want: `reset e1, commit 3, upsert "a" 4 1, upsert "b" 4 1, commit 4,` +
				` delete "a" 5, delete "b" 5, commit 5`,
		},
		"catch-up is one transaction": {
			events: []*message{
				reset(), at("services@e1-3", endOfSnapshot(3, 0)),
				freshness("catching_up", "slow"),
				at("services@e1-3/9", remove("a", 8)), at("services@e1-5/9", upsert("b", 5, "1")),
				at("services@e1-9", upsert("c", 9, "1")),
				at("services@e1-9", bookmark(9)), freshness("in_sync", ""),
				at("services@e1-10", upsert("d", 10, "1")),
			},
			want: `reset e1, commit 3, delete "a" 8, upsert "b" 5 1, upsert "c" 9 1, commit 9,` +
				` status in_sync , upsert "d" 10 1, commit 10`,
		},
		"catch-up without positions": {
			events: []*message{
				reset(), endOfSnapshot(3, 0), freshness("catching_up", ""),
				upsert("b", 5, "1"), upsert("c", 9, "1"), bookmark(9), upsert("d", 10, "1"),
			},
			want: `reset FALLBACK, commit 3, upsert "b" 5 1, upsert "c" 9 1, commit 9, upsert "d" 10 1, commit 10`,
		},
		"bookmarks are progress": {
			events: []*message{
				reset(), at("services@e1-3", endOfSnapshot(3, 0)),
				bookmark(4), at("services@e1-6", bookmark(6)),
			},
			want: `reset e1, commit 3, commit 4, commit 6`,
		},
		"a horizon comes before what is newer": {
			events: []*message{
				reset(), at("services@e1-3", endOfSnapshot(3, 0)),
				outage(3, 9), at("services@e1-9", upsert("a", 7, "1")), at("services@e1-12", outage(12, 12)),
			},
			want: `reset e1, commit 3, horizon 9, commit 3, upsert "a" 7 1, commit 9, horizon 12, commit 12`,
		},
		"a resume is one transaction up to caught up": {
			resume: stream.Resume{Epoch: "e1", Revision: 3},
			events: []*message{
				at("services@e1-4", upsert("a", 4, "1")), at("services@e1-5", remove("b", 5)),
				at("services@e1-5", caughtUp(5)), at("services@e1-6", upsert("a", 6, "2")),
			},
			want: `upsert "a" 4 1, delete "b" 5, commit 5, status in_sync , upsert "a" 6 2, commit 6`,
		},
		"a resume that catches up ends at end_of_snapshot": {
			resume: stream.Resume{Epoch: "e1", Revision: 3},
			events: []*message{
				freshness("catching_up", "slow"), at("services@e1-5", upsert("a", 5, "1")),
				at("services@e1-5", caughtUp(5)), at("services@e1-6", upsert("a", 6, "2")),
			},
			want: `upsert "a" 5 1, commit 5, status in_sync , upsert "a" 6 2, commit 6`,
		},
		"a resume with nothing new": {
			resume: stream.Resume{Epoch: "e1", Revision: 3},
			events: []*message{at("services@e1-3", caughtUp(3))},
			want:   `commit 3, status in_sync `,
		},
		"a resume at an upstream that is stale": {
			resume: stream.Resume{Epoch: "e1", Revision: 3},
			events: []*message{freshness("stale", "lost"), at("services@e1-3", caughtUp(3)), freshness("in_sync", "")},
			want:   `status stale lost, commit 3, status in_sync `,
		},
		"a resume that is answered with reset": {
			resume: stream.Resume{Epoch: "e1", Revision: 3},
			events: []*message{reset(), upsert("a", 1, "1"), at("services@e2-1", endOfSnapshot(1, 1))},
			want:   `reset FALLBACK, upsert "a" 1 1, reset e2, upsert "a" 1 1, commit 1`,
		},
		"a resume that is interrupted by reset": {
			resume: stream.Resume{Epoch: "e1", Revision: 3},
			events: []*message{
				upsert("a", 4, "1"), reset(), upsert("b", 7, "1"), at("services@e1-7", endOfSnapshot(7, 1)),
			},
			want: `upsert "a" 4 1, reset FALLBACK, upsert "b" 7 1, reset e1, upsert "b" 7 1, commit 7`,
		},
		"a reset while live": {
			events: []*message{
				reset(), at("services@e1-3", endOfSnapshot(3, 0)), freshness("catching_up", ""),
				reset(), upsert("a", 1, "1"), at("services@e2-1", endOfSnapshot(1, 1)),
				at("services@e2-2", upsert("a", 2, "2")),
			},
			want: `reset e1, commit 3, reset FALLBACK, upsert "a" 1 1, reset e2, upsert "a" 1 1, commit 1,` +
				` upsert "a" 2 2, commit 2`,
		},
		"status is passed on, unless it is ours or unknown": {
			events: []*message{
				freshness("priming", "no snapshot yet"), reset(), endOfSnapshot(3, 0),
				freshness("stale", ""), freshness("resyncing", "etcd is back"), freshness("in_sync", ""),
				freshness("catching_up", ""), freshness("melting", "too warm"),
			},
			want: `status priming no snapshot yet, reset FALLBACK, commit 3, status stale stale,` +
				` status resyncing etcd is back, status in_sync `,
		},
		"in_sync comes after its changes": {
			events: []*message{
				reset(), at("services@e1-3", endOfSnapshot(3, 0)),
				upsert("a", 4, "1"), at("services@e1-4", freshness("in_sync", "")),
			},
			want: `reset e1, commit 3, upsert "a" 4 1, commit 4, status in_sync `,
		},
		"unknown events are ignored, their positions are not": {
			events: []*message{
				reset(), at("services@e1-3", endOfSnapshot(3, 0)), unknownEvent(""),
				upsert("a", 4, "1"), unknownEvent("services@e1-4"),
			},
			want: `reset e1, commit 3, upsert "a" 4 1, commit 4`,
		},
		"positions that begin after the snapshot come too late": {
			events: []*message{
				reset(), endOfSnapshot(3, 0), at("services@e1-4", upsert("a", 4, "1")), at("garbage", upsert("a", 5, "2")),
			},
			want: `reset FALLBACK, commit 3, upsert "a" 4 1, commit 4, upsert "a" 5 2, commit 5`,
		},
		"an upstream that does not narrow is narrowed": {
			config: Config{Prefix: "web/"},
			events: []*message{
				reset(), upsert("web/a", 1, "1"), upsert("db/a", 2, "2"), at("services@e1-2", endOfSnapshot(2, 2)),
				at("services@e1-3", remove("db/a", 3)), at("services@e1-4", remove("web/a", 4)),
			},
			want: `reset 0d0da6338efb, upsert "web/a" 1 1, reset e1~1b7ed2, upsert "web/a" 1 1, commit 2, commit 3, delete "web/a" 4, commit 4`,
		},
		"keys, values and encodings are kept": {
			events: []*message{
				reset(),
				upsert("a b/\n\x00é", 1, "{\"n\": 12345678901234567890.10,\n \"s\":\"\u2028\"}"),
				encoded("/w==", "base64", `"AAE="`, "base64"),
				endOfSnapshot(2, 2),
			},
			want: `reset FALLBACK, upsert "a b/\n\x00é" 1 {"n":12345678901234567890.10,"s":"` + "\u2028" + `"},` +
				` upsert "\xff" 2 "AAE=" base64, commit 2`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sink := &calls{}
			if err := follow(t, test.config, test.resume, sink, test.events...); err != nil {
				t.Error(err)
			}
			want := strings.ReplaceAll(test.want, "FALLBACK", fallback)
			if got := strings.Join(sink.lines, ", "); got != want {
				t.Errorf("calls\n got %s\nwant %s", got, want)
			}
		})
	}
}

// Each test's last event is the one that is rejected.
func TestReaderRefuses(t *testing.T) {
	synced := []*message{reset(), at("services@e1-3", endOfSnapshot(3, 0))}
	tests := map[string]struct {
		events []*message
		want   string
	}{
		"nothing at all":            {[]*message{{}}, "event 1: empty message: want an event"},
		"upsert before reset":       {[]*message{upsert("a", 1, "1")}, `event 1: a change of key "a" before reset: want reset first`},
		"delete before reset":       {[]*message{remove("a", 1)}, `event 1: a change of key "a" before reset: want reset first`},
		"end before reset":          {[]*message{endOfSnapshot(1, 0)}, "event 1: end_of_snapshot before reset: want reset first"},
		"upsert of nothing":         {append(synced, &message{Event: &pb.WatchListResponse_Upsert{}}), "event 3: upsert without a resource"},
		"value that is not JSON":    {append(synced, upsert("a", 4, `{"a":}`)), `event 3: value of key "a" is "{\"a\":}": want JSON text in UTF-8`},
		"value that is empty":       {append(synced, upsert("a", 4, "")), `event 3: value of key "a" is "": want JSON text in UTF-8`},
		"value that is not UTF-8":   {append(synced, upsert("a", 4, "\"\xff\"")), `event 3: value of key "a" is "\"\xff\"": want JSON text in UTF-8`},
		"revision 0":                {append(synced, upsert("a", 0, "1")), `event 3: revision of key "a" is 0: want 1 or more`},
		"key that is not base64":    {append(synced, encoded("!", "base64", "1", "")), `event 3: key "!": illegal base64`},
		"unknown key encoding":      {append(synced, encoded("a", "rot13", "1", "")), `event 3: key "a": key_encoding "rot13": want "base64" or nothing`},
		"unknown encoding":          {append(synced, encoded("a", "", "1", "rot13")), `event 3: encoding of key "a" is "rot13": want "base64" or nothing`},
		"malformed position":        {append(synced, at("services@e1-x", bookmark(4))), `event 3: position "services@e1-x": want watch@epoch-revision`},
		"position of another watch": {append(synced, at("nodes@e1-4", bookmark(4))), `event 3: position "nodes@e1-4": want one of watch "services"`},
		"another epoch, no reset":   {append(synced, at("services@e2-4", bookmark(4))), `event 3: position "services@e2-4": want epoch "e1", or a reset before`},
		"fewer than counted":        {[]*message{reset(), upsert("a", 1, "1"), endOfSnapshot(1, 2)}, "event 3: end_of_snapshot counts 2 resources, 1 came"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := follow(t, Config{}, stream.Resume{}, &calls{}, slices.Clone(test.events)...)
			if !errors.Is(err, stream.ErrInvalid) {
				t.Fatalf("error %v, want ErrInvalid", err)
			}
			if want := `grpc upstream:1, watch "services", ` + test.want; !strings.Contains(err.Error(), want) {
				t.Errorf("error\n got %v\nwant %s", err, want)
			}
		})
	}
}

// An epoch other than the requested one, without a reset, would mix two
// revision orders.
// A server that goes on in another revision order than that of the position, without a reset,
// may do so since another part of the watch may be seen now: a snapshot has to take its place.
func TestReaderDoesNotResumeInAnotherEpoch(t *testing.T) {
	sink := &calls{}
	err := follow(t, Config{}, stream.Resume{Epoch: "e1", Revision: 3}, sink, at("services@e2-4", upsert("a", 4, "1")))
	if !errors.Is(err, stream.ErrUnresumable) || len(sink.lines) != 0 {
		t.Errorf("error %v after %q, want ErrUnresumable and no call", err, sink.lines)
	}
}

func TestReaderReturnsTheErrorOfTheSink(t *testing.T) {
	events := []*message{
		reset(), upsert("a", 1, "1"), at("services@e1-1", endOfSnapshot(1, 1)), freshness("stale", "x"),
		remove("a", 2), at("services@e1-2", bookmark(2)),
	}
	for _, fail := range []string{
		"reset f8b4bc22d596", "reset e1", `upsert "a" 1 1`, "commit 1", "status stale x", `delete "a" 2`, "commit 2",
	} {
		sink := &calls{fail: fail}
		err := playUntilError(t, sink, events)
		if !errors.Is(err, errSink) {
			t.Errorf("%s fails: got %v, want the sink's error", fail, err)
		}
		if last := sink.lines[len(sink.lines)-1]; last != fail {
			t.Errorf("%s fails, and %s is called after it", fail, last)
		}
	}
}

func TestReaderGoodbye(t *testing.T) {
	for reason, want := range map[string]string{
		"draining": "goodbye", "max_age": "goodbye", "overloaded": "goodbye", "complete": "goodbye", "holidays": "goodbye",
		"token_expired": `grpc upstream:1, watch "services": goodbye, token_expired`,
		"revoked":       `grpc upstream:1, watch "services": goodbye, revoked`,
		"watch_removed": `grpc upstream:1, watch "services": goodbye, watch_removed`,
	} {
		err := follow(t, Config{}, stream.Resume{}, &calls{}, goodbye(reason, 0))
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", reason, err, want)
		}
		if orderly := want == "goodbye"; errors.Is(err, errGoodbye) != orderly {
			t.Errorf("%s: orderly is %t, want %t", reason, !orderly, orderly)
		}
	}
}

// FuzzReader feeds arbitrary messages to a reader. It must not panic, and must
// keep the order of Sink's calls: changes only after Reset, no value that is not
// JSON, nothing after an error.
func FuzzReader(f *testing.F) {
	for _, m := range []*message{
		reset(), at("services@e-1/2", upsert("a", 1, "{}")), remove("a", 2),
		at("services@e-3", endOfSnapshot(3, 1)), bookmark(4), freshness("stale", "x"), goodbye("draining", 5), unknownEvent(""),
	} {
		f.Add(delimited(reset(), m, m, at("services@e-3", endOfSnapshot(3, 0)), m))
	}
	s, err := New(Config{Address: "upstream:1", Watch: "services"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		sink := &contract{t: t}
		r := newReader(s, stream.Resume{}, sink)
		for _, m := range undelimited(wire) {
			if err := r.receive(m); err != nil {
				return
			}
		}
	})
}

// contract is a Sink that checks its calls.
type contract struct {
	stream.PlainSink
	t     *testing.T
	begun bool
}

func (c *contract) Reset(epoch string) error {
	if c.begun = epoch != ""; !c.begun {
		c.t.Error("Reset without an epoch")
	}
	return nil
}

func (c *contract) Upsert(r stream.Resource) error {
	if _, ok := stream.CompactJSON(r.Value); !ok || r.Revision == 0 {
		c.t.Errorf("Upsert of %+v", r)
	}
	return c.change("Upsert")
}

func (c *contract) Delete(string, uint64) error { return c.change("Delete") }

func (c *contract) Commit(uint64) error { return c.change("Commit") }

func (c *contract) Status(stream.State, string) error { return nil }

func (c *contract) change(what string) error {
	if !c.begun {
		c.t.Errorf("%s before Reset", what)
	}
	return nil
}

func playUntilError(t *testing.T, sink *calls, events []*message) error {
	for n := 1; n <= len(events); n++ {
		sink.lines = nil
		if err := follow(t, Config{}, stream.Resume{}, sink, events[:n]...); err != nil {
			return err
		}
	}
	return nil
}

// encoded is an upsert with encodings, at revision 2.
func encoded(key, keyEncoding, value, encoding string) *message {
	m := upsert(key, 2, value)
	m.GetUpsert().Resource.KeyEncoding, m.GetUpsert().Resource.Encoding = keyEncoding, encoding
	return m
}

// unknownEvent is an event of a type that this version does not know.
func unknownEvent(position string) *message {
	m := &message{Position: position}
	wire := protowire.AppendTag(nil, 99, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendBytes(wire, nil))
	return m
}
