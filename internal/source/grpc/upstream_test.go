package grpc

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/source/adapter"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// Nothing of a snapshot is served before end_of_snapshot, and its absence is
// reported.
func TestNeverEndOfSnapshot(t *testing.T) {
	complete := make(chan struct{})
	u := serve(t, func(c *call) error {
		c.send(at("services@e1-0/2", reset()), upsert("x", 1, "1"), upsert("y", 2, "1"))
		select {
		case <-complete:
		case <-c.out.Context().Done():
		}
		c.send(at("services@e1-2", endOfSnapshot(2, 2)))
		return c.hold()
	})
	w := declare(t, u, Config{})
	s := subscribe(t, w)
	s.untilStatus(stream.Priming, "no end_of_snapshot after")
	if w.Snapshot().Primed() || len(s.state) > 0 {
		t.Errorf("%v of an incomplete snapshot was served", s.state)
	}
	close(complete)
	s.untilKey("y")
	s.wantState(map[string]string{"x": "1", "y": "1"})
}

// A snapshot that is never completed does not replace the served state. Its
// progress is reported whether or not the upstream has named its epoch yet.
func TestNeverEndOfTheSecondSnapshot(t *testing.T) {
	for name, begin := range map[string]*message{
		"with positions":    at("services@e1-0/9", reset()),
		"without positions": reset(),
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, sayAndEnd(nil, first()...), say(begin, upsert("z", 3, "1")))
			w := declare(t, u, Config{})
			s := subscribe(t, w)
			s.untilStatus(stream.Resyncing, "s, 1 resource so far")
			s.wantState(map[string]string{"x": "1", "y": "1"})
		})
	}
}

// Deletes of keys that do not exist, or not yet, are harmless.
func TestDeleteBeforeItsUpsert(t *testing.T) {
	u := serve(t, say(
		reset(), remove("x", 0), upsert("x", 1, "1"), upsert("y", 2, "1"), remove("y", 0), at("services@e1-2", endOfSnapshot(2, 2)),
		at("services@e1-3", remove("z", 3)), at("services@e1-4", upsert("z", 4, "1")),
		at("services@e1-5", remove("unknown", 5)), at("services@e1-6", upsert("end", 6, "1")),
	))
	s := subscribe(t, declare(t, u, Config{}))
	s.untilKey("end")
	s.wantState(map[string]string{"x": "1", "z": "1", "end": "1"})
}

// The same key twice in a snapshot: the later one counts.
func TestSameKeyTwiceInASnapshot(t *testing.T) {
	u := serve(t, say(reset(), upsert("x", 1, "1"), upsert("x", 2, "2"), at("services@e1-2", endOfSnapshot(2, 1))))
	s := subscribe(t, declare(t, u, Config{}))
	s.untilKey("x")
	s.wantState(map[string]string{"x": "2"})
}

// An upstream in another revision order: subscribers get a reset that reports it.
func TestEpochChange(t *testing.T) {
	restored := []*message{reset(), upsert("old", 1, "1"), at("services@e2-1", endOfSnapshot(1, 1))}
	for name, reconnects := range map[string]bool{"on the stream": false, "after a reconnect": true} {
		t.Run(name, func(t *testing.T) {
			proceed := make(chan struct{})
			u := serve(t, func(c *call) error {
				c.send(first()...)
				<-proceed
				if reconnects {
					return nil
				}
				return say(restored...)(c)
			}, say(restored...))
			w := declare(t, u, Config{})
			s := subscribe(t, w)
			s.untilKey("y")
			close(proceed)
			s.untilKey("old")
			s.wantState(map[string]string{"old": "1"})
			if got := s.resets(); !slices.Equal(got, []string{"initial", "epoch_changed"}) {
				t.Errorf("resets %q, want the initial one and epoch_changed", got)
			}
			if got := w.Snapshot().Epoch(); got != "e2" {
				t.Errorf("epoch %q, want the upstream's, e2", got)
			}
			wantResyncs(t, w, "epoch_changed", 1)
		})
	}
}

// A call that the server fails because of its position is repeated without one.
func TestResumeThatIsAnError(t *testing.T) {
	for _, code := range []codes.Code{codes.InvalidArgument, codes.OutOfRange, codes.FailedPrecondition} {
		t.Run(code.String(), func(t *testing.T) {
			positions := make(chan string, 3)
			note := func(s script) script {
				return func(c *call) error {
					positions <- c.Position
					return s(c)
				}
			}
			u := serve(t,
				note(sayAndEnd(nil, first()...)),
				note(sayAndEnd(status.Error(code, "compacted"))),
				note(say(reset(), upsert("z", 3, "1"), at("services@e1-3", endOfSnapshot(3, 1)))))
			w := declare(t, u, Config{})
			s := subscribe(t, w)
			s.untilKey("z")
			if got := []string{<-positions, <-positions, <-positions}; !slices.Equal(got, []string{"", "services@e1-2", ""}) {
				t.Errorf("positions %q, want none, the last one, none", got)
			}
			if got := w.Stats().Reconnects["unresumable"]; got != 1 {
				t.Errorf("reconnects %v, want one unresumable", w.Stats().Reconnects)
			}
		})
	}
}

// A catch-up, which is consistent only at its end, is one flush for subscribers.
func TestCatchUpIsOneTransaction(t *testing.T) {
	proceed := make(chan struct{})
	u := serve(t, func(c *call) error {
		c.send(first()...)
		<-proceed
		c.send(
			freshness("catching_up", "too far behind"), at("services@e1-2/9", remove("x", 8)),
			at("services@e1-5/9", upsert("a", 5, "1")), at("services@e1-9", upsert("b", 9, "1")),
			at("services@e1-9", bookmark(9)), freshness("in_sync", ""))
		return c.hold()
	})
	w := declare(t, u, Config{})
	s := subscribe(t, w)
	s.untilKey("y")
	seen := len(s.events)
	close(proceed)
	s.untilKey("b")
	var got []string
	for _, e := range s.events[seen:] {
		got = append(got, e.Type.String()+" "+e.Resource.Key)
	}
	if flush := slices.Collect(s.batch.Events()); len(flush) != 4 || flush[0].Conflated != 9 || !s.batch.Boundary() {
		t.Errorf("the catch-up arrived as %q, its last flush has %d events; want one flush of a bookmark with conflated, and three changes", got, len(flush))
	}
	if got := w.Snapshot().Revision(); got != 9 {
		t.Errorf("revision %d, want 9", got)
	}
}

// Subscribers get the upstream's status, except for its reasons: those are for
// operators.
func TestUpstreamStatusIsPassedOn(t *testing.T) {
	proceed := make(chan struct{})
	u := serve(t, func(c *call) error {
		c.send(freshness("priming", "its own upstream is slow"))
		<-proceed
		c.send(first(freshness("stale", "its own upstream is lost"))...)
		<-proceed
		c.send(freshness("in_sync", ""))
		return c.hold()
	})
	w := declare(t, u, Config{})
	s := subscribe(t, w)
	s.untilStatus(stream.Priming, "the upstream says that it is priming")
	if got := w.Status().Full(); !strings.Contains(got, "its own upstream is slow") {
		t.Errorf("operators got the status %q", got)
	}
	proceed <- struct{}{}
	s.untilStatus(stream.Stale, "the upstream says that it is stale")
	if got := w.Status().Full(); !strings.Contains(got, "its own upstream is lost") {
		t.Errorf("operators got the status %q", got)
	}
	proceed <- struct{}{}
	s.untilStatus(stream.InSync, "")
}

// follows runs one Watch call from nothing and returns its error.
func follows(t *testing.T, c Config) error {
	t.Helper()
	c.Watch = "services"
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return s.Watch(ctx, stream.Resume{}, &calls{})
}

func TestUpstreamThatIsNone(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := listener.Addr().String()
	_ = listener.Close()
	for name, test := range map[string]struct {
		address string
		code    codes.Code
		want    string
	}{
		"nobody listens":   {refused, codes.Unavailable, "connection refused"},
		"another service":  {listen(t, grpc.NewServer()), codes.Unimplemented, "want a server of watchtide.v1.WatchService"},
		"another protocol": {rawServer(t, []byte("220 mail.example.com ESMTP\r\n")), codes.Unavailable, ""},
		"noise":            {rawServer(t, bytes.Repeat([]byte{0xff, 0x00, 0x17}, 1000)), codes.Unavailable, ""},
		"hangs up at once": {rawServer(t, nil), codes.Unavailable, ""},
		"no such address":  {"passthrough:///256.0.0.1:x", codes.Unavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := follows(t, Config{Address: test.address})
			if status.Code(err) != test.code || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(err.Error(), "grpc "+test.address+`, watch "services"`) {
				t.Errorf("error %v, want code %v, %s", err, test.code, test.want)
			}
		})
	}
}

// rawServer sends something to each client and hangs up.
func rawServer(t *testing.T, greeting []byte) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(greeting)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return listener.Addr().String()
}

// Bytes that are not a message are distinguished from errors of a server.
func TestGarbageInsteadOfAMessage(t *testing.T) {
	garbage := func(_ any, s grpc.ServerStream) error {
		return s.SendMsg([]byte{0xff, 0xff, 0xff})
	}
	address := listen(t, grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(garbage)))
	if err := follows(t, Config{Address: address}); !errors.Is(err, stream.ErrInvalid) {
		t.Errorf("error %v, want ErrInvalid", err)
	}
	address = serve(t, sayAndEnd(status.Error(codes.Internal, "a bug of the server"))).address
	if err := follows(t, Config{Address: address}); errors.Is(err, stream.ErrInvalid) || status.Code(err) != codes.Internal {
		t.Errorf("error %v, want the server's own", err)
	}
}

// raw is a codec that sends bytes as they are.
type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }

func (raw) Name() string { return "proto" }

func TestRequestAndMetadata(t *testing.T) {
	got := make(chan *call, 1)
	u := serve(t, func(c *call) error {
		got <- c
		return nil
	})
	s, err := New(Config{
		Address: u.address, Watch: "services", Prefix: "web/",
		Metadata: adapter.Metadata{"Authorization": {Text: "Bearer secret"}, "x-tenant": {Text: "blue"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Watch(t.Context(), stream.Resume{}, &calls{}); err != nil {
		t.Fatal(err)
	}
	c := <-got
	if c.Watch != "services" || c.Prefix != "web/" || c.Position != "" || c.UntilEndOfSnapshot {
		t.Errorf("request %v", c.WatchListRequest)
	}
	if a, b := c.metadata.Get("authorization"), c.metadata.Get("x-tenant"); !slices.Equal(a, []string{"Bearer secret"}) || !slices.Equal(b, []string{"blue"}) {
		t.Errorf("metadata %v", c.metadata)
	}
}

// Metadata is secret: it is in no error, even if the upstream repeats it.
func TestErrorsKeepMetadataSecret(t *testing.T) {
	const token = "Bearer secret"
	refusal := sayAndEnd(status.Error(codes.Unauthenticated, `token "`+token+`" of team "a" has expired`))
	for name, test := range map[string]struct {
		value  string
		script script
		want   string
	}{
		"refused":        {token, refusal, `token "[hidden]" of team "a" has expired`},
		"without Bearer": {"Token secret", refusal, `token "Bearer [hidden]" of`},
		"cannot be sent": {token + "\n", refusal, "authorization"},
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, test.script)
			err := follows(t, Config{Address: u.address, Metadata: adapter.Metadata{"authorization": {Text: test.value}, "x-team": {Text: "a"}}})
			if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if code := status.Code(err); code != codes.Unauthenticated && code != codes.Internal {
				t.Errorf("code %v is not that of the error", code)
			}
		})
	}
}

// The token is read for each call, is sent beside the metadata, and is in no error.
func TestTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	got := make(chan *call, 1)
	u := serve(t, func(c *call) error {
		got <- c
		return status.Error(codes.Unauthenticated, "who is "+c.metadata.Get("authorization")[0])
	})
	c := Config{Address: u.address, TokenFile: file, Metadata: adapter.Metadata{"x-team": {Text: "a"}}}
	for _, token := range []string{"tOkEn1", "tOkEn2"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := follows(t, c)
		const want = "who is [hidden]; want a token in token_file, or metadata, that it accepts"
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("error %v, want %s", err, want)
		}
		sent := (<-got).metadata
		if a, b := sent.Get("authorization"), sent.Get("x-team"); !slices.Equal(a, []string{"Bearer " + token}) || !slices.Equal(b, []string{"a"}) {
			t.Errorf("metadata %v", sent)
		}
	}
	for text, want := range map[string]string{"": "want one line", "sEcReT\nx": "want one line", "sEcReT\x00": "want one line"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := follows(t, c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sEcReT") {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
	os.Remove(file)
	if err := follows(t, c); err == nil || !strings.Contains(err.Error(), "token file: open "+file) {
		t.Errorf("without the file: %v", err)
	}
	if len(got) > 0 {
		t.Error("a call was made without a token")
	}
	if len(c.Metadata) != 1 {
		t.Errorf("the configuration is now %v", c.Metadata)
	}
}

// TestMetadataFileRotates: it is read for each call, as the token is.
func TestMetadataFileRotates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	got := make(chan *call, 1)
	u := serve(t, func(c *call) error {
		got <- c
		return status.Error(codes.Unauthenticated, "who is "+c.metadata.Get("x-api-key")[0])
	})
	c := Config{Address: u.address, Metadata: adapter.Metadata{"x-api-key": {File: file}}}
	for _, key := range []string{"first-key", "second-key"} {
		if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := follows(t, c); err == nil || !strings.Contains(err.Error(), "who is [hidden]") {
			t.Errorf("error %v", err)
		}
		if sent := (<-got).metadata.Get("x-api-key"); !slices.Equal(sent, []string{key}) {
			t.Errorf("it sends %q, want %q", sent, key)
		}
	}
	if err := os.WriteFile(file, []byte("two\nlines"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := follows(t, c); err == nil || !strings.Contains(err.Error(), "file "+file+" of x-api-key: want one line of printable ASCII") {
		t.Errorf("error %v", err)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	u := serve(t, say(first()...))
	s, err := New(Config{Address: u.address, Watch: "services"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	sink := &cancelling{cancel: cancel}
	if err := s.Watch(ctx, stream.Resume{}, sink); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// cancelling cancels at the first Commit.
type cancelling struct {
	calls
	cancel context.CancelFunc
}

func (c *cancelling) Commit(revision uint64) error {
	c.cancel()
	return c.calls.Commit(revision)
}

func BenchmarkReader(b *testing.B) {
	s, err := New(Config{Address: "upstream:1", Watch: "services"})
	if err != nil {
		b.Fatal(err)
	}
	r := newReader(s, stream.Resume{}, discard{})
	for _, m := range []*pb.WatchListResponse{reset(), at("services@e1-1", endOfSnapshot(1, 0))} {
		if err := r.receive(m); err != nil {
			b.Fatal(err)
		}
	}
	m := at("services@e1-2", upsert("key-000001", 2, `{"text":"`+strings.Repeat("x", 280)+`"}`))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.receive(m); err != nil {
			b.Fatal(err)
		}
	}
}

// discard is a Sink that does nothing.
type discard struct{ stream.PlainSink }

func (discard) Reset(string) error                { return nil }
func (discard) Upsert(stream.Resource) error      { return nil }
func (discard) Delete(string, uint64) error       { return nil }
func (discard) Commit(uint64) error               { return nil }
func (discard) Status(stream.State, string) error { return nil }
