package rpc

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/tracing"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// WatchList implements api.WatchServiceServer.
//
// A client that does not read blocks only its own stream: gRPC buffers about 64 KiB
// for it and then blocks Send. A flush, which is about 64 KiB or one resource, has
// WriteTimeout; after that the call ends with DEADLINE_EXCEEDED and its subscription
// is closed. There is no goodbye, since it would not be read. What gRPC buffers is a
// part of Config.AnswerBudget until the client reads on, or until its connection is
// closed for being too slow: see parcel.
func (s *server) WatchList(r *api.WatchListRequest, out grpc.ServerStreamingServer[api.WatchListResponse]) error {
	from := s.Proxies.OfCall(out.Context())
	client := limits.ClientOf(from.Addr())
	w, p := s.Lookup.Find(out.Context(), r.GetWatch(), client.String())
	if p != nil {
		return s.Streams.Unfound(metrics.GRPC, p)
	}
	of, p := w.Narrow(out.Context(), authz.NarrowingIn(r), client.String())
	if p != nil {
		return p
	}
	first, err := session.ParseFirst(r.GetFirst())
	if err != nil {
		return session.FirstRefused("first", err)
	}
	interval := time.Duration(0)
	if rate := r.GetMaxRate(); rate != "" {
		if interval, p = session.ParseMaxRate(rate); p != nil {
			return p
		}
	}
	as, refused := s.Streams.Admit(out.Context(), client, w)
	if refused != nil {
		return s.Streams.Refused(metrics.GRPC, refused)
	}
	with := s.Streams.Authorizations.Enter(authz.IdentityOf(out.Context()), of)
	defer s.Streams.Leave(as, with)
	req := session.RequestOne(metrics.GRPC, w.Name(), r.GetPosition(), first...)
	req.Until, req.Interval = r.GetUntilEndOfSnapshot(), interval
	parts, err := s.Streams.Open(&req, []authz.Part{of}, client)
	if err != nil {
		return s.Streams.NotOpened(metrics.GRPC, err)
	}
	if req.Until {
		if p := s.Lookup.Prime(out.Context(), parts[0]); p != nil {
			return p
		}
	}
	tracing.StreamBegins(out.Context())
	agent := strings.Join(metadata.ValueFromIncomingContext(out.Context(), "user-agent"), " ")
	c := session.New(s.Streams, req, with, parts)
	c.Identity, c.Request = s.Streams.Subscribers.Enter(from, agent, authz.IdentityOf(out.Context())), s.Streams.Tracing.ParentOf(out.Context())
	return newMessages(s, out).carry(c)
}

// messages sends the events of a session to a gRPC client.
//
// It has two goroutines: a blocked Send can be left only by ending the call, and the
// call ends when the method returns. So the method's own goroutine waits, and a second
// one pumps.
type messages struct {
	// Static after construction.
	out      grpc.ServerStreamingServer[api.WatchListResponse]
	timeout  time.Duration
	stalled  chan struct{} // closed when a Send took too long
	watchdog *time.Timer   // closes stalled

	// Owned by the pumping goroutine.
	parcels parcels
	sent    int
	failure error
}

func newMessages(s *server, out grpc.ServerStreamingServer[api.WatchListResponse]) *messages {
	m := &messages{
		out: out, timeout: s.Streams.WriteTimeout, stalled: make(chan struct{}),
		parcels: parcels{server: s, client: limits.Payer(authz.IdentityOf(out.Context()), s.Proxies.ClientOfCall(out.Context())), out: out},
	}
	m.watchdog = time.AfterFunc(m.timeout, sync.OnceFunc(func() { close(m.stalled) }))
	m.watchdog.Stop()
	return m
}

// carry returns when the session has ended, or when the client has not read for too long. Then the
// pump ends as soon as the call has.
func (m *messages) carry(c session.Session) error {
	p := session.NewPump(c, m, m.out.Context().Done())
	done := make(chan error, 1)
	go func() {
		done <- problem.Recovered(func() error {
			p.Run()
			if p.GoodbyeSaid == "" && m.failure == nil {
				return m.out.Context().Err()
			}
			return m.failure
		})
	}()
	select {
	case err := <-done:
		return err
	case <-m.stalled:
		return problem.New(http.StatusGatewayTimeout, "the client did not read for %s", m.timeout)
	}
}

// WriteHello implements session.Encoder: there is no such message.
func (m *messages) WriteHello(*session.Session) {}

// WriteHeartbeat implements session.Encoder: HTTP/2 itself shows that the connection is alive.
func (m *messages) WriteHeartbeat() {}

// WriteBatch implements session.Encoder. The position goes with its own event: a client gets the
// epoch of a snapshot with end_of_snapshot at the latest.
func (m *messages) WriteBatch(c *session.Session, id []byte) {
	m.watchdog.Reset(m.timeout)
	defer m.watchdog.Stop()
	var tail []*api.WatchListResponse // the last event of the watch, and the statuses after it
	for e := range c.Batch.Events() {
		if e.Type != stream.StatusChange {
			m.send(tail)
			tail = tail[:0]
		}
		tail = append(tail, eventMessage(e))
	}
	if len(id) > 0 && len(tail) > 0 {
		tail[0].Position = string(id)
	}
	m.send(tail)
}

func (m *messages) send(messages []*api.WatchListResponse) {
	for _, one := range messages {
		if m.failure != nil {
			return
		}
		size := proto.Size(one)
		m.failure = m.parcels.send(one, size, func() { m.watchdog.Stop() }, func() { m.watchdog.Reset(m.timeout) })
		if m.failure == nil {
			m.sent += size
		}
	}
}

// WriteGoodbye implements session.Encoder. The call itself ends without an error.
func (m *messages) WriteGoodbye(c *session.Session, reason stream.GoodbyeReason) {
	if m.failure != nil {
		return
	}
	m.watchdog.Reset(m.timeout)
	defer m.watchdog.Stop()
	m.failure = m.out.Send(&api.WatchListResponse{Event: &api.WatchListResponse_Goodbye{
		Goodbye: &api.Goodbye{Reason: string(reason), RetryMs: uint32(c.Retry.Milliseconds())},
	}})
}

// Flush implements session.Output: gRPC sends each message at once.
func (m *messages) Flush() {}

// End implements session.Output: the call ends with the method.
func (m *messages) End() {}

// Sent implements session.Output.
func (m *messages) Sent() int { return m.sent }

// Failure implements session.Output.
func (m *messages) Failure() error { return m.failure }

// TimedOut implements session.Output.
func (m *messages) TimedOut() bool { return session.Closed(m.stalled) }

// eventMessage makes the message of an event. It does not copy values.
func eventMessage(e stream.Event) *api.WatchListResponse {
	var m api.WatchListResponse
	switch e.Type {
	case stream.Reset:
		m.Event = &api.WatchListResponse_Reset_{Reset_: &api.Reset{Reason: e.Reason}}
	case stream.Upsert:
		m.Event = &api.WatchListResponse_Upsert{Upsert: &api.Upsert{Resource: unary.ResourceMessage(e.Resource)}}
	case stream.Delete:
		key, encoding := stream.WireKey(e.Resource.Key)
		m.Event = &api.WatchListResponse_Delete{Delete: &api.Delete{
			Key: key, KeyEncoding: encoding, Revision: e.Resource.Revision, Left: e.Left,
		}}
	case stream.EndOfSnapshot:
		m.Event = &api.WatchListResponse_EndOfSnapshot{EndOfSnapshot: &api.EndOfSnapshot{
			Revision: e.Revision, Count: uint64(e.Count), Resumed: e.Resumed, Window: windowMessage(e),
		}}
	case stream.Bookmark:
		m.Event = &api.WatchListResponse_Bookmark{Bookmark: &api.Bookmark{
			Revision: e.Revision, Skipped: e.Skipped, Horizon: e.Horizon, Conflated: e.Conflated, Window: windowMessage(e),
		}}
	case stream.StatusChange:
		m.Event = &api.WatchListResponse_Status{Status: statusMessage(e)}
	}
	return &m
}

// windowMessage returns what a window says besides its resources; nil: it is no window.
func windowMessage(e stream.Event) *api.Window {
	if !e.Window {
		return nil
	}
	return &api.Window{Total: uint64(e.Total), Before: uint64(e.Before), Next: e.Next}
}

func statusMessage(e stream.Event) *api.Status {
	s := &api.Status{State: e.State.String(), Reason: e.Reason}
	if !e.Since.IsZero() {
		s.Since = timestamppb.New(e.Since)
	}
	return s
}
