package store

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

// filled is a store whose watch notes has the resources a/0 (revision 2), b/1
// (3) and a/2 (5); b/9 was created (1) and deleted (4).
func filled(t testing.TB) *Store {
	t.Helper()
	s := New(Config{})
	w := s.Writer("notes")
	write(t, w, "b/9", "9")
	write(t, w, "a/0", "0")
	write(t, w, "b/1", "1")
	if _, err := w.Delete(background, stream.DeleteRequest{Key: "b/9"}); err != nil {
		t.Fatal(err)
	}
	write(t, w, "a/2", "2")
	return s
}

// transcript calls WatchList and records n messages, or all until the end, one per
// line. POS stands for watch and epoch.
func transcript(t *testing.T, s *Store, r *pb.WatchListRequest, n int) (lines []string, last error) {
	t.Helper()
	r.Watch = "notes"
	call, err := pb.NewWatchServiceClient(newChannel(s)).WatchList(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for len(lines) < n {
		m, err := call.Recv()
		if err != nil {
			return lines, err
		}
		lines = append(lines, line(s, m))
	}
	return lines, nil
}

func line(s *Store, m *pb.WatchListResponse) string {
	text := "unknown"
	switch e := m.GetEvent().(type) {
	case *pb.WatchListResponse_Reset_:
		text = "reset " + e.Reset_.GetReason()
	case *pb.WatchListResponse_Upsert:
		r := e.Upsert.GetResource()
		text = fmt.Sprintf("upsert %s %d %s", r.GetKey(), r.GetRevision(), r.GetValue())
	case *pb.WatchListResponse_Delete:
		text = fmt.Sprintf("delete %s %d", e.Delete.GetKey(), e.Delete.GetRevision())
	case *pb.WatchListResponse_EndOfSnapshot:
		text = fmt.Sprintf("end %d, %d, %t", e.EndOfSnapshot.GetRevision(), e.EndOfSnapshot.GetCount(), e.EndOfSnapshot.GetResumed())
	case *pb.WatchListResponse_Status:
		text = "status " + e.Status.GetState()
	case *pb.WatchListResponse_Goodbye:
		text = "goodbye " + e.Goodbye.GetReason()
	}
	// Positions inside a walk are up to the log.
	if m.GetPosition() != "" && !strings.Contains(m.GetPosition(), "/") {
		text += " @ " + strings.ReplaceAll(m.GetPosition(), "notes@"+epoch(s), "POS")
	}
	return text
}

func epoch(s *Store) string { return s.find("notes").log.Snapshot().Epoch() }

func TestWatchListTranscript(t *testing.T) {
	const snapshot = "upsert a/0 2 0; upsert b/1 3 1; upsert a/2 5 2; end 5, 3, false @ POS-5"
	tests := map[string]struct {
		request *pb.WatchListRequest
		want    string
	}{
		"from nothing":                  {&pb.WatchListRequest{}, "reset initial; " + snapshot},
		"until the end of the snapshot": {&pb.WatchListRequest{UntilEndOfSnapshot: true}, "reset initial; " + snapshot + "; goodbye complete; EOF"},
		"after a position":              {&pb.WatchListRequest{Position: "POS-3"}, "delete b/9 4; upsert a/2 5 2; end 5, 3, true @ POS-5"},
		"at the head":                   {&pb.WatchListRequest{Position: "POS-5"}, "end 5, 3, true @ POS-5"},
		"in the middle of a snapshot":   {&pb.WatchListRequest{Position: "POS-2/5"}, "upsert b/1 3 1; upsert a/2 5 2; end 5, 3, true @ POS-5"},
		"ahead":                         {&pb.WatchListRequest{Position: "POS-6"}, "status resyncing; reset ahead; " + snapshot + "; status in_sync"},
		"in another epoch":              {&pb.WatchListRequest{Position: "notes@other-3"}, "reset epoch_changed; " + snapshot},
		"of another watch":              {&pb.WatchListRequest{Position: "nodes@other-3"}, "reset invalid_position; " + snapshot},
		"garbage":                       {&pb.WatchListRequest{Position: "garbage"}, "reset invalid_position; " + snapshot},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := filled(t)
			n := strings.Count(test.want, ";") + 1
			test.request.Position = strings.ReplaceAll(test.request.Position, "POS", "notes@"+epoch(s))
			lines, err := transcript(t, s, test.request, n)
			if errors.Is(err, io.EOF) {
				lines = append(lines, "EOF")
			}
			if got := strings.Join(lines, "; "); got != test.want {
				t.Errorf("transcript\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestWatchListPrefix(t *testing.T) {
	s := filled(t)
	lines, _ := transcript(t, s, &pb.WatchListRequest{Prefix: "a/"}, 4)
	got := strings.Join(lines, "; ")
	if want := "reset initial; upsert a/0 2 0; upsert a/2 5 2; end 5, 2, false"; !strings.HasPrefix(got, want) {
		t.Errorf("transcript\n got %s\nwant %s…", got, want)
	}
}

// TestStoreDoesNotNarrow: what it would have to ignore is refused.
func TestStoreDoesNotNarrow(t *testing.T) {
	s := filled(t)
	for name, request := range map[string]func() error{
		"labels": func() error { _, err := transcript(t, s, &pb.WatchListRequest{Labels: "a=b"}, 1); return err },
		"order":  func() error { _, err := transcript(t, s, &pb.WatchListRequest{Order: "n", Limit: 1}, 1); return err },
		"filter": func() error { _, err := transcript(t, s, &pb.WatchListRequest{Filter: "true"}, 1); return err },
		"fields": func() error { _, err := transcript(t, s, &pb.WatchListRequest{Fields: []string{"a"}}, 1); return err },
		"keys":   func() error { _, err := transcript(t, s, &pb.WatchListRequest{Keys: []string{"a/0"}}, 1); return err },
		"first":  func() error { _, err := transcript(t, s, &pb.WatchListRequest{First: []string{"a/0"}}, 1); return err },
		"by":     func() error { _, err := transcript(t, s, &pb.WatchListRequest{By: []string{"a"}}, 1); return err },
		"rate":   func() error { _, err := transcript(t, s, &pb.WatchListRequest{MaxRate: "2/s"}, 1); return err },
		"list": func() error {
			_, err := s.ListResources(background, &pb.ListResourcesRequest{Watch: "notes", Prefix: "a/"})
			return err
		},
		"resource": func() error {
			_, err := s.GetResource(background, &pb.GetResourceRequest{Watch: "notes", Key: "a/0", Filter: "true"})
			return err
		},
	} {
		if err := request(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want InvalidArgument", name, err)
		}
	}
}

// TestNoPositionsWithPrefix: one of the whole watch is not continued with a prefix.
func TestNoPositionsWithPrefix(t *testing.T) {
	s := filled(t)
	lines, _ := transcript(t, s, &pb.WatchListRequest{Prefix: "b/", Position: "notes@" + epoch(s) + "-3"}, 3)
	if got, want := strings.Join(lines, "; "), "reset invalid_position; upsert b/1 3 1; end 5, 1, false"; got != want {
		t.Errorf("transcript\n got %s\nwant %s", got, want)
	}
}

// code is the gRPC code of an error, and its text.
func code(err error) string { return status.Code(err).String() + ": " + status.Convert(err).Message() }

func TestServiceErrors(t *testing.T) {
	s := filled(t)
	s.config.Load().MaxValueBytes = 10
	_, list := transcriptOf(t, s, "none")
	_, watch := s.GetWatch(background, &pb.GetWatchRequest{Watch: "none"})
	_, page := s.ListResources(background, &pb.ListResourcesRequest{Watch: "none"})
	_, token := s.ListResources(background, &pb.ListResourcesRequest{Watch: "notes", PageToken: "x"})
	_, noWatch := s.GetResource(background, &pb.GetResourceRequest{Watch: "none", Key: "a"})
	_, noKey := s.GetResource(background, &pb.GetResourceRequest{Watch: "notes", Key: "none"})
	_, encoding := s.GetResource(background, &pb.GetResourceRequest{Watch: "notes", Key: "a", KeyEncoding: "rot13"})
	_, put := s.PutResource(background, &pb.PutResourceRequest{Watch: "none", Key: "a", Value: []byte("1")})
	_, putKey := s.PutResource(background, &pb.PutResourceRequest{Watch: "notes", Key: "!", KeyEncoding: "base64"})
	_, invalid := s.PutResource(background, &pb.PutResourceRequest{Watch: "notes", Key: "a", Value: []byte("{")})
	_, large := s.PutResource(background, &pb.PutResourceRequest{Watch: "notes", Key: "a", Value: []byte(`"123456789"`)})
	_, conflict := s.PutResource(background, &pb.PutResourceRequest{Watch: "notes", Key: "a/0", Value: []byte("1"), IfRevision: ptr(9)})
	_, remove := s.DeleteResource(background, &pb.DeleteResourceRequest{Watch: "none", Key: "a"})
	_, removeOther := s.DeleteResource(background, &pb.DeleteResourceRequest{Watch: "notes", Key: "a/0", IfRevision: ptr(9)})
	for want, err := range map[string]error{
		`NotFound: there is no watch "none"`:                                           list,
		`NotFound: watch "notes" has no key "none"`:                                    noKey,
		`InvalidArgument: page token "x": want the next_page_token of the page before`: token,
		`InvalidArgument: key_encoding "rot13": want "base64" or nothing`:              encoding,
		`InvalidArgument: illegal base64 data at input byte 0`:                         putKey,
		`InvalidArgument: value "{": want JSON text in UTF-8`:                          invalid,
		`ResourceExhausted: value of 11 bytes is too large, the limit is 10`:           large,
		`Aborted: key "a/0" is at revision 2, 9 was expected`:                          conflict,
	} {
		if got := code(err); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for what, err := range map[string]error{"GetWatch": watch, "ListResources": page, "GetResource": noWatch, "PutResource": put, "DeleteResource": remove} {
		if got, want := code(err), `NotFound: there is no watch "none"`; got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	if status.Code(removeOther) != codes.Aborted {
		t.Errorf("DeleteResource: got %v, want Aborted", removeOther)
	}
}

// transcriptOf returns the transcript of another watch.
func transcriptOf(t *testing.T, s *Store, watch string) (*pb.WatchListResponse, error) {
	t.Helper()
	call, err := pb.NewWatchServiceClient(newChannel(s)).WatchList(t.Context(), &pb.WatchListRequest{Watch: watch})
	if err != nil {
		return nil, err
	}
	return call.Recv()
}

func TestServiceReads(t *testing.T) {
	s := filled(t)
	s.Source("empty")
	watches, err := s.ListWatches(background, &pb.ListWatchesRequest{})
	if err != nil || len(watches.GetWatches()) != 2 || watches.GetWatches()[0].GetName() != "empty" {
		t.Errorf("watches %v, error %v", watches, err)
	}
	w, err := s.GetWatch(background, &pb.GetWatchRequest{Watch: "notes"})
	if err != nil || w.GetState() != "in_sync" || w.GetRevision() != 5 || w.GetCount() != 3 || w.GetEpoch() != epoch(s) || !w.GetWritable() {
		t.Errorf("watch %v, error %v", w, err)
	}
	r, err := s.GetResource(background, &pb.GetResourceRequest{Watch: "notes", Key: "Yi8x", KeyEncoding: "base64"})
	if err != nil || r.GetKey() != "b/1" || string(r.GetValue()) != "1" {
		t.Errorf("resource %v, error %v", r, err)
	}
	page, err := s.ListResources(background, &pb.ListResourcesRequest{Watch: "notes", PageSize: 2})
	if err != nil || len(page.GetResources()) != 2 || page.GetCount() != 3 || page.GetPosition() != "notes@"+epoch(s)+"-5" {
		t.Fatalf("page %v, error %v", page, err)
	}
	write(t, s.Writer("notes"), "a/7", "7")
	rest, err := s.ListResources(background, &pb.ListResourcesRequest{Watch: "notes", PageToken: page.GetNextPageToken()})
	if err != nil || len(rest.GetResources()) != 1 || rest.GetRevision() != 5 || rest.GetNextPageToken() != "" {
		t.Errorf("page %v, error %v: want the rest of revision 5", rest, err)
	}
}

func TestServiceWrites(t *testing.T) {
	s := filled(t)
	put, err := s.PutResource(background, &pb.PutResourceRequest{Watch: "notes", Key: "/w==", KeyEncoding: "base64", Value: []byte("1"), IfRevision: ptr(0)})
	if err != nil || !put.GetCreated() || put.GetResource().GetKey() != "/w==" || put.GetResource().GetRevision() != 6 {
		t.Errorf("put %v, error %v", put, err)
	}
	if _, ok := get(s, "notes", "\xff"); !ok {
		t.Error("the key is not there")
	}
	for _, want := range []bool{true, false} {
		r, err := s.DeleteResource(background, &pb.DeleteResourceRequest{Watch: "notes", Key: "a/0"})
		if err != nil || r.GetDeleted() != want {
			t.Errorf("delete %v, error %v, want %t", r, err, want)
		}
	}
}
