package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/rpc"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

// grpcRig is a rig with a gRPC client, also in memory.
type grpcRig struct {
	*rig
	client api.WatchServiceClient
}

func newGRPCRig(t *testing.T, c Config, watches ...string) *grpcRig {
	t.Helper()
	r := &grpcRig{rig: newRig(t, c, watches...)}
	listener := gatewaytest.NewNetwork()
	server := rpc.New(r.gateway.calls, nil, nil)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	r.client = grpcClient(t, listener)
	return r
}

// newServedRig returns a rig whose gRPC side is the one that Serve runs, and whose
// HTTP client speaks HTTP/2.
func newServedRig(t *testing.T, c Config, watches ...string) *grpcRig {
	t.Helper()
	r := &grpcRig{rig: newRig(t, c, watches...)}
	r.client = grpcClient(t, r.rpc)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{DialContext: r.network.Dial, DisableCompression: true, Protocols: &protocols}
	r.rig.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	return r
}

func grpcClient(t *testing.T, listener *gatewaytest.Network) api.WatchServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:gateway",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(1<<20), // fixed: no probing
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.Dial(ctx, "", "") }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return api.NewWatchServiceClient(conn)
}

// listing is a WatchList call whose events are read as they arrive.
type listing struct {
	cancel context.CancelFunc
	events chan string
	end    chan error // io.EOF: it ended without an error
}

func (r *grpcRig) watchList(q *api.WatchListRequest) *listing {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := r.client.WatchList(ctx, q)
	if err != nil {
		r.t.Fatal(err)
	}
	l := &listing{cancel: cancel, events: make(chan string, 10000), end: make(chan error, 1)}
	go func() {
		for {
			m, err := s.Recv()
			if err != nil {
				l.end <- err
				return
			}
			l.events <- eventText(m)
		}
	}()
	r.t.Cleanup(cancel)
	return l
}

// eventText writes an event on one line: its kind and content, and its position.
func eventText(m *api.WatchListResponse) string {
	text := ""
	switch e := m.GetEvent().(type) {
	case *api.WatchListResponse_Reset_:
		text = "reset " + e.Reset_.GetReason()
	case *api.WatchListResponse_Upsert:
		r := e.Upsert.GetResource()
		text = fmt.Sprintf("upsert %s%s %d %s", r.GetKey(), r.GetKeyEncoding(), r.GetRevision(), r.GetValue())
	case *api.WatchListResponse_Delete:
		text = fmt.Sprintf("delete %s%s %d", e.Delete.GetKey(), e.Delete.GetKeyEncoding(), e.Delete.GetRevision())
	case *api.WatchListResponse_EndOfSnapshot:
		text = fmt.Sprintf("end_of_snapshot %d count %d resumed %t", e.EndOfSnapshot.GetRevision(), e.EndOfSnapshot.GetCount(), e.EndOfSnapshot.GetResumed())
	case *api.WatchListResponse_Bookmark:
		text = fmt.Sprintf("bookmark %d", e.Bookmark.GetRevision())
	case *api.WatchListResponse_Status:
		text = "status " + e.Status.GetState()
	case *api.WatchListResponse_Goodbye:
		text = "goodbye " + e.Goodbye.GetReason()
	}
	if m.GetPosition() != "" {
		text += " @" + m.GetPosition()
	}
	return text
}

// take returns the events since the last take.
func (l *listing) take() string {
	synctest.Wait()
	var all []string
	for {
		select {
		case e := <-l.events:
			all = append(all, e)
		default:
			return strings.Join(all, "\n")
		}
	}
}

func (l *listing) want(t *testing.T, events ...string) {
	t.Helper()
	if got, want := l.take(), strings.Join(events, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func (l *listing) wantEnd(t *testing.T, code codes.Code) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-l.end:
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if status.Code(err) != code {
			t.Errorf("ended with %v, want %s", err, code)
		}
	default:
		t.Errorf("has not ended, want %s", code)
	}
}

func TestWatchList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{}, "services")
		l := r.watchList(&api.WatchListRequest{Watch: "services"})
		l.want(t, "status priming")
		r.Prime("services", 7, gatewaytest.Resource("a", 5, `{"n": 1}`), gatewaytest.Resource("\xff", 6, `2`))
		// in_sync comes with the snapshot or right after it.
		got := l.take()
		want := "reset initial @services@e1-0/7\n" + `upsert a 5 {"n": 1}` + "\nupsert /w==base64 6 2\nend_of_snapshot 7 count 2 resumed false\nstatus in_sync"
		if strings.ReplaceAll(got, " @services@e1-7", "") != want || strings.Count(got, " @services@e1-7") != 1 {
			t.Errorf("got\n%s\nwant\n%s\nwith one position at or after end_of_snapshot", got, want)
		}
		r.Commit("services", 8, gatewaytest.Resource("a", 8, `3`), gatewaytest.Resource("b", 8, `4`))
		l.want(t, "upsert a 8 3", "upsert b 8 4 @services@e1-8")
		r.Do("services", func(s stream.Sink) error { return errors.Join(s.Delete("\xff", 9), s.Commit(9)) })
		l.want(t, "delete /w==base64 9 @services@e1-9")
		l.cancel()
		l.wantEnd(t, codes.Canceled)
	})
}

func TestWatchListResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{}, "services")
		r.Prime("services", 7, gatewaytest.Resource("a", 5, `1`))
		r.Commit("services", 8, gatewaytest.Resource("b", 8, `2`))
		synctest.Wait()
		r.watchList(&api.WatchListRequest{Watch: "services", Position: "services@e1-7"}).
			want(t, "upsert b 8 2", "end_of_snapshot 8 count 2 resumed true @services@e1-8")
		for position, reason := range map[string]string{
			"services@e0-7": "epoch_changed", "nonsense": "invalid_position",
			"nodes@e1-7": "invalid_position", "services@e1-1": "expired",
			strings.Repeat("x", 5000): "invalid_position",
		} {
			l := r.watchList(&api.WatchListRequest{Watch: "services", Position: position})
			if got := l.take(); !strings.HasPrefix(got, "reset "+reason+" @services@e1-0/8\n") {
				t.Errorf("after %.20q: %s, want reset %s", position, got, reason)
			}
			l.cancel()
		}
	})
}

func TestWatchListUntilEndOfSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{}, "services")
		r.Prime("services", 7, gatewaytest.Resource("a/1", 5, `1`), gatewaytest.Resource("b/1", 6, `2`))
		synctest.Wait()
		l := r.watchList(&api.WatchListRequest{Watch: "services", UntilEndOfSnapshot: true, Prefix: "b/"})
		got := strings.Split(l.take(), "\n")
		if len(got) != 4 || got[1] != "upsert b/1 6 2" || !strings.HasPrefix(got[2], "end_of_snapshot 7 count 1 resumed false @services@") || got[3] != "goodbye complete" {
			t.Errorf("got %q", got)
		}
		l.wantEnd(t, codes.OK)
	})
}

func TestWatchListUntilNeverPrimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{}, "services")
		l := r.watchList(&api.WatchListRequest{Watch: "services", UntilEndOfSnapshot: true})
		time.Sleep(5*time.Second - 1)
		l.want(t)
		time.Sleep(time.Nanosecond)
		l.wantEnd(t, codes.Unavailable)
	})
}

// TestWatchListBookmark checks that a quiet watch that makes progress reports it,
// once for each heartbeat.
func TestWatchListBookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{StreamSettings: StreamSettings{Heartbeat: 10 * time.Second}}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		l := r.watchList(&api.WatchListRequest{Watch: "services"})
		l.want(t, "reset initial @services@e1-0/7", "end_of_snapshot 7 count 0 resumed false @services@e1-7")
		time.Sleep(25 * time.Second)
		l.want(t)
		r.Commit("services", 100)
		l.want(t, "bookmark 100 @services@e1-100")
		r.Commit("services", 101)
		l.want(t)
		time.Sleep(10 * time.Second)
		l.want(t, "bookmark 101 @services@e1-101")
		time.Sleep(time.Minute)
		l.want(t)
	})
}

func TestWatchListMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{StreamSettings: StreamSettings{MaxAge: time.Minute}}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		l := r.watchList(&api.WatchListRequest{Watch: "services"})
		l.take()
		time.Sleep(54*time.Second - 1)
		l.want(t)
		time.Sleep(12*time.Second + 1)
		l.want(t, "goodbye max_age")
		l.wantEnd(t, codes.OK)
	})
}

func TestWatchListDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{StreamSettings: StreamSettings{Drain: 10 * time.Second}}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		var all []*listing
		for range 20 {
			l := r.watchList(&api.WatchListRequest{Watch: "services"})
			l.take()
			all = append(all, l)
		}
		go r.gateway.Drain()
		synctest.Wait()
		refused := r.watchList(&api.WatchListRequest{Watch: "services"})
		refused.wantEnd(t, codes.Unavailable)
		early := 0
		const half = 100 * time.Millisecond // of the time for 20 goodbyes
		time.Sleep(half)
		for _, l := range all {
			early += len(l.end)
		}
		if early == 0 || early == len(all) {
			t.Errorf("%d of %d left in the first half of the goodbyes", early, len(all))
		}
		time.Sleep(10*time.Second - half)
		for _, l := range all {
			l.want(t, "goodbye draining")
			l.wantEnd(t, codes.OK)
		}
	})
}

func TestWatchListRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		l := r.watchList(&api.WatchListRequest{Watch: "services"})
		l.take()
		r.Registry.Remove("services")
		l.want(t, "goodbye watch_removed")
		l.wantEnd(t, codes.OK)
		r.watchList(&api.WatchListRequest{Watch: "services"}).wantEnd(t, codes.NotFound)
	})
}

func TestWatchListOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{StreamSettings: StreamSettings{MaxSubscribers: 1}}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		first := r.watchList(&api.WatchListRequest{Watch: "services"})
		first.take()
		r.watchList(&api.WatchListRequest{Watch: "services"}).wantEnd(t, codes.Unavailable)
		if n := counter(t, r.gateway, "watchtide_goodbyes_total", "transport", "grpc", "reason", "overloaded"); n != 1 {
			t.Errorf("%v refusals are counted", n)
		}
		first.cancel()
		synctest.Wait()
		again := r.watchList(&api.WatchListRequest{Watch: "services"})
		again.want(t, "reset initial @services@e1-0/7", "end_of_snapshot 7 count 0 resumed false @services@e1-7")
	})
}

// TestWatchListClientDoesNotRead checks that such a client does not affect another
// one, and is gone after the write time-out.
func TestWatchListClientDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{StreamSettings: StreamSettings{WriteTimeout: 10 * time.Second}}, "services")
		var all []stream.Resource
		for i := range uint64(100) {
			all = append(all, gatewaytest.Resource(fmt.Sprint(i), i+1, `"`+strings.Repeat("v", 10000)+`"`))
		}
		r.Prime("services", 100, all...)
		synctest.Wait()
		w, _ := r.Registry.Watch("services")

		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stuck, err := r.client.WatchList(ctx, &api.WatchListRequest{Watch: "services"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		other := r.watchList(&api.WatchListRequest{Watch: "services"})
		if got := strings.Count(other.take(), "upsert"); got != 100 {
			t.Errorf("the other client has %d upserts", got)
		}
		time.Sleep(10*time.Second - 1)
		synctest.Wait()
		if n := w.Subscribers(); n != 2 {
			t.Errorf("%d subscribers before the time-out", n)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := w.Subscribers(); n != 1 {
			t.Errorf("%d subscribers after the time-out", n)
		}
		for err == nil {
			_, err = stuck.Recv() // the bytes that gRPC has buffered arrive; then the end
		}
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("ended with %v", err)
		}
		if got := counter(t, r.gateway, "watchtide_write_timeouts_total", "transport", "grpc"); got != 1 {
			t.Errorf("%v write time-outs counted", got)
		}
	})
}

// TestWatchListSlowReader checks that slow is not stuck: a client that reads a little
// now and then may stay connected indefinitely.
func TestWatchListSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGRPCRig(t, Config{StreamSettings: StreamSettings{WriteTimeout: 10 * time.Second}}, "services")
		var all []stream.Resource
		for i := range uint64(40) {
			all = append(all, gatewaytest.Resource(fmt.Sprint(i), i+1, `"`+strings.Repeat("v", 10000)+`"`))
		}
		r.Prime("services", 100, all...)
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		slow, err := r.client.WatchList(ctx, &api.WatchListRequest{Watch: "services", UntilEndOfSnapshot: true})
		if err != nil {
			t.Fatal(err)
		}
		events := 0
		for {
			if _, err = slow.Recv(); err != nil {
				break
			}
			events++
			time.Sleep(time.Second)
		}
		if !errors.Is(err, io.EOF) || events != 43 {
			t.Errorf("%d events, then %v", events, err)
		}
	})
}

// watchHosts opens a call and waits for its snapshot; the returned function ends it.
func (r *apiRig) watchHosts(t *testing.T) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s, err := r.grpc.WatchList(ctx, &api.WatchListRequest{Watch: "hosts"})
	if err != nil {
		t.Fatal(err)
	}
	for {
		m, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.GetEndOfSnapshot() != nil {
			return cancel
		}
	}
}
