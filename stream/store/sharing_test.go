package store

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

// list reads one watch over an in-process channel up to end_of_snapshot.
func list(t *testing.T, c grpc.ClientConnInterface) []*pb.WatchListResponse {
	t.Helper()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	call, err := pb.NewWatchServiceClient(c).WatchList(ctx, &pb.WatchListRequest{Watch: "notes"})
	if err != nil {
		t.Fatal(err)
	}
	var all []*pb.WatchListResponse
	for {
		m, err := call.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, m); m.GetEndOfSnapshot() != nil {
			return all
		}
	}
}

// upserts are the resources of the messages.
func upserts(messages []*pb.WatchListResponse) (all []*pb.Resource) {
	for _, m := range messages {
		if u := m.GetUpsert(); u != nil {
			all = append(all, u.GetResource())
		}
	}
	return all
}

// A writer's buffer stays the writer's: it may be reused at once.
func TestWriterKeepsItsBuffer(t *testing.T) {
	s := New(Config{})
	w := s.Writer("notes")
	buffer := []byte(`{"n":1}`)
	stored, _, err := w.Put(background, stream.PutRequest{Key: "a", Value: buffer})
	if err != nil {
		t.Fatal(err)
	}
	copy(buffer, `XXXXXXX`)
	read, _ := get(s, "notes", "a")
	for what, value := range map[string][]byte{"answer": stored.Value, "store": read.Value, "reader": upserts(list(t, newChannel(s)))[0].GetValue()} {
		if string(value) != `{"n":1}` {
			t.Errorf("the %s's value follows the writer's buffer: %s", what, value)
		}
	}
}

// No reader can change another's view: all parts of a message are its own, and so
// is the result of appending to a value.
func TestReadersDoNotShareMessages(t *testing.T) {
	s := New(Config{})
	w := s.Writer("notes")
	for i := range 3 {
		write(t, w, fmt.Sprint("k", i), fmt.Sprintf(`"value %d"`, i))
	}
	c := newChannel(s)
	vandal, witness := list(t, c), list(t, c)
	before := make([]proto.Message, len(witness))
	for i, m := range witness {
		before[i] = proto.Clone(m)
	}
	for _, m := range vandal {
		if r := m.GetUpsert().GetResource(); r != nil {
			_ = append(r.Value, ` and whatever lies behind it`...)
			r.Key, r.Revision, r.Value, r.Encoding = "vandal", 99, []byte("0"), "x"
		}
		if e := m.GetEndOfSnapshot(); e != nil {
			e.Revision, e.Count = 99, 99
		}
		m.Event, m.Position = nil, "vandal"
	}
	for i, m := range witness {
		if !proto.Equal(m, before[i]) {
			t.Errorf("message %d was changed by another reader: %v, was %v", i, m, before[i])
		}
	}
	for i, m := range list(t, c) {
		if !proto.Equal(m, before[i]) {
			t.Errorf("message %d of a later reader is %v, was %v", i, m, before[i])
		}
	}
}

// Values are shared, not copied: every reader, and the store itself, has the same
// bytes, without capacity to grow into a neighbour's.
func TestReadersShareValues(t *testing.T) {
	s := New(Config{})
	stored := write(t, s.Writer("notes"), "a", `"`+strings.Repeat("x", 1000)+`"`)
	c := newChannel(s)
	for range 2 {
		value := upserts(list(t, c))[0].GetValue()
		if unsafe.SliceData(value) != unsafe.SliceData(stored.Value) {
			t.Error("the value was copied on its way to a reader")
		}
		if cap(value) != len(value) {
			t.Errorf("value of %d bytes has a capacity of %d: append would write into the log", len(value), cap(value))
		}
	}
}

// A reader that breaks the contract, and writes into the values that it was given,
// changes its own view and nothing else: not the store, not another watch of it,
// not a client over the network, not later readers.
func TestModifiedValuesAreNotShared(t *testing.T) {
	s := New(Config{})
	want := map[string]string{}
	for i := range 50 {
		key, value := fmt.Sprint("k", i), fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("v", 10*i))
		want[key] = value
		write(t, s.Writer("notes"), key, value)
	}
	spoilt, witness, network := served(t, s), subscribe(t, served(t, s)), dialled(t, s)
	for _, e := range subscribe(t, spoilt).until(atRevision(50)) {
		spoil(e.Resource.Value)
	}
	if r, _ := spoilt.Snapshot().Get("k7"); r.Value[0] != '#' {
		t.Fatalf("the writing reader has changed nothing: %s", r.Value)
	}
	for _, r := range upserts(list(t, network)) {
		spoil(r.Value)
	}
	stored, _, err := s.Writer("notes").Put(background, stream.PutRequest{Key: "k7", Value: []byte("7"), ValidateOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	spoil(stored.Value)

	seen := map[string]map[string]string{"another watch": {}, "the network": {}, "the store": {}, "a later watch": {}}
	for _, e := range witness.until(atRevision(50)) {
		if e.Type == stream.Upsert {
			seen["another watch"][e.Resource.Key] = string(e.Resource.Value)
		}
	}
	for _, r := range upserts(list(t, network)) {
		seen["the network"][r.Key] = string(r.Value)
	}
	later := served(t, s)
	for key := range want {
		r, _ := get(s, "notes", key)
		seen["the store"][key] = string(r.Value)
		r, _ = later.Snapshot().Get(key)
		seen["a later watch"][key] = string(r.Value)
	}
	for who, got := range seen {
		if !maps.Equal(got, want) {
			t.Errorf("%s sees %v", who, got)
		}
	}
}

// spoil writes into a value, which is forbidden.
func spoil(value []byte) {
	for i := range value {
		value[i] = '#'
	}
}

// dialled returns a client of the store over a network.
func dialled(t *testing.T, s *Store) grpc.ClientConnInterface {
	t.Helper()
	server := newServer(t, s)
	server.start(t)
	conn, err := grpc.NewClient("unix:"+server.path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.stop()
	})
	return conn
}

// A reader's values stay valid during later writes: values are replaced, not
// overwritten, and compaction moves copies.
func TestValuesOutliveTheirReplacement(t *testing.T) {
	s := New(Config{})
	w := s.Writer("notes")
	var kept []stream.Resource
	for n := range 2_000 {
		kept = append(kept, write(t, w, fmt.Sprint("k", n%10), fmt.Sprintf(`{"n":%d,"pad":%q}`, n, strings.Repeat("p", 200))))
	}
	for n, r := range kept {
		if want := fmt.Sprintf(`{"n":%d,`, n); !strings.HasPrefix(string(r.Value), want) {
			t.Fatalf("the value of revision %d is now %.40s…, was %s…", r.Revision, r.Value, want)
		}
	}
}

// Writers write while readers read, for the race detector.
func TestReadersAndWritersAtOnce(t *testing.T) {
	s := New(Config{})
	w := s.Writer("notes")
	write(t, w, "k0", "0")
	c := newChannel(s)
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			for i := range 200 {
				write(t, w, fmt.Sprint("k", i%7), fmt.Sprintf(`{"writer":%d,"n":%d}`, n, i))
			}
		})
		all.Go(func() {
			for range 20 {
				for _, r := range upserts(list(t, c)) {
					if _, ok := stream.CompactJSON(r.GetValue()); !ok {
						t.Errorf("half a value: %q", r.GetValue())
					}
				}
			}
		})
	}
	all.Wait()
}

// Only the messages of WatchList can be passed.
func TestSharingRefusesOtherMessages(t *testing.T) {
	for _, pair := range [][2]any{
		{&pb.Watch{}, &pb.Watch{}},
		{&pb.WatchListRequest{}, &pb.WatchListResponse{}},
		{&pb.WatchListResponse{}, &pb.WatchListRequest{}},
	} {
		if err := (sharing{}).Copy(pair[0], pair[1]); err == nil {
			t.Errorf("%T was copied into %T", pair[1], pair[0])
		}
	}
}

// Every field of the messages is passed.
func TestSharingCopiesEveryField(t *testing.T) {
	request := &pb.WatchListRequest{Watch: "w", Position: "p", Prefix: "x", UntilEndOfSnapshot: true, Labels: "l", Filter: "f", Fields: []string{"n"}, Keys: []string{"k"}, First: []string{"i"}, Order: "o", Limit: 1, Offset: 2, After: "a", By: []string{"b"}, Sum: "s", MaxRate: "2/s"}
	response := &pb.WatchListResponse{
		Event:    &pb.WatchListResponse_Bookmark{Bookmark: &pb.Bookmark{Revision: 1}},
		Position: "p",
	}
	for _, pair := range [][2]proto.Message{{&pb.WatchListRequest{}, request}, {&pb.WatchListResponse{}, response}} {
		fields := pair[1].ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			if f := fields.Get(i); f.ContainingOneof() == nil && !pair[1].ProtoReflect().Has(f) {
				t.Errorf("the test does not set %s", f.FullName())
			}
		}
		if err := (sharing{}).Copy(pair[0], pair[1]); err != nil || !proto.Equal(pair[0], pair[1]) {
			t.Errorf("got %v, error %v, want %v", pair[0], err, pair[1])
		}
	}
}
