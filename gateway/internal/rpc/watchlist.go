package rpc

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/tracing"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	"github.com/watchtide/watchtide/internal/log"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
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
	as, refused := s.Streams.Admit(out.Context(), client, w)
	if refused != nil {
		return s.Streams.Refused(metrics.GRPC, refused)
	}
	with := s.Streams.Passes.Enter(authz.IdentityOf(out.Context()), of)
	defer s.Streams.Leave(as, with)
	resume, _ := session.ResumeFrom(w.Name(), r.GetPosition())
	part, err := s.Streams.OpenPart(of, client, resume)
	if err != nil {
		return s.Streams.NotOpened(metrics.GRPC, err)
	}
	if r.GetUntilEndOfSnapshot() {
		if p := s.Lookup.Prime(out.Context(), part); p != nil {
			return p
		}
	}
	s.Streams.Metrics.StreamOpened(metrics.GRPC)
	defer s.Streams.Metrics.StreamClosed(metrics.GRPC)
	tracing.StreamBegins(out.Context())
	agent := strings.Join(metadata.ValueFromIncomingContext(out.Context(), "user-agent"), " ")
	who := s.Streams.Subscribers.Enter(from, agent, authz.IdentityOf(out.Context()))
	return newListPump(s, part, introspection.ViewOf(w.Name(), of.Shared(part)), r, with, who, out).supervise()
}

// listPump moves the events of one watch to one gRPC client.
//
// It has two goroutines: a blocked Send can be left only by ending the call, and the
// call ends when the method returns. So the method's own goroutine waits, and a second
// one pumps.
type listPump struct {
	// Static after construction.
	server   *server
	watch    *watch.Watch
	out      grpc.ServerStreamingServer[api.WatchListResponse]
	until    bool
	retry    time.Duration
	stalled  chan struct{}
	watchdog *time.Timer // sends to stalled

	// Owned by the pumping goroutine.
	session.Progress
	parcels  parcels
	draining <-chan struct{} // nil once noticed
	timer    *time.Timer
	farewell stream.GoodbyeReason // the one that was sent
}

func newListPump(s *server, w *watch.Watch, of introspection.ViewRef, r *api.WatchListRequest, with *authz.Pass, who introspection.Identity, out grpc.ServerStreamingServer[api.WatchListResponse]) *listPump {
	options := log.SubscribeOptions{AheadWait: s.Streams.AheadWait, MinRate: s.Streams.MinRate}
	options.Resume, options.Invalid = session.ResumeFrom(w.Name(), r.GetPosition())
	p := &listPump{
		server: s, watch: w, out: out, until: r.GetUntilEndOfSnapshot(), retry: s.Streams.RetryHint(),
		stalled: make(chan struct{}, 1), draining: s.Streams.Admission.Draining,
		Progress: session.NewProgress(out.Context(), s.Streams, metrics.GRPC, with, who, w, of, w.Subscribe(options)),
		timer:    time.NewTimer(s.Streams.Heartbeat),
		parcels:  parcels{server: s, client: limits.Payer(authz.IdentityOf(out.Context()), s.Proxies.ClientOfCall(out.Context())), out: out},
	}
	p.watchdog = time.AfterFunc(s.Streams.WriteTimeout, func() {
		select {
		case p.stalled <- struct{}{}:
		default:
		}
	})
	p.watchdog.Stop()
	return p
}

// supervise returns when the stream has ended, or when the client has not read for
// too long.
func (p *listPump) supervise() error {
	done := make(chan error, 1)
	go func() {
		defer p.close()
		done <- problem.Recovered(p.run)
	}()
	select {
	case err := <-done:
		p.server.Streams.Subscribers.Remove(p.Published, p.reasonEnded(err))
		return err
	case <-p.stalled:
		p.server.Streams.Subscribers.Remove(p.Published, introspection.LeftUnread)
		p.server.Streams.Metrics.WriteTimeout(metrics.GRPC)
		return problem.New(http.StatusGatewayTimeout, "the client did not read for %s", p.server.Streams.WriteTimeout)
	}
}

// reasonEnded returns why the stream ended; err is the result of the pump.
func (p *listPump) reasonEnded(err error) introspection.DepartureReason {
	var failed *problem.PanicError
	switch {
	case err == nil:
		return introspection.DepartureReason(p.farewell)
	case errors.As(err, &failed):
		return introspection.LeftByAccident
	}
	return introspection.LeftByItself
}

func (p *listPump) close() {
	p.watchdog.Stop()
	p.timer.Stop()
	p.Progress.Close()
}

// run pumps until the client disconnects, or gets its goodbye.
func (p *listPump) run() error {
	for {
		for p.reasonToEnd() == "" && p.Next() {
			if err := p.sendBatch(); err != nil {
				return err
			}
		}
		if reason := p.reasonToEnd(); reason != "" {
			return p.goodbye(reason)
		}
		if err := p.wait(); err != nil {
			return err
		}
	}
}

// wait returns when there may be something to send. Progress without data is reported
// once for each heartbeat; HTTP/2 itself shows that the connection is alive.
func (p *listPump) wait() error {
	at := p.QuietSince.Add(p.server.Streams.Heartbeat)
	if !time.Now().Before(at) {
		if p.Bookmark() {
			return p.sendBatch()
		}
		p.QuietSince = time.Now()
		at = p.QuietSince.Add(p.server.Streams.Heartbeat)
	}
	at = session.Earlier(at, session.Earlier(p.EndsAt(), p.Sub.Deadline()))
	p.timer.Reset(time.Until(at))
	select {
	case <-p.out.Context().Done():
		return p.out.Context().Err()
	case <-p.watch.Done():
	case <-p.draining:
	case <-p.Pass.Ended():
	case <-p.Changed():
	case <-p.timer.C:
	}
	return nil
}

// reasonToEnd returns why the server must end the stream now, or "".
func (p *listPump) reasonToEnd() stream.GoodbyeReason {
	reason := p.ReasonToEnd(time.Now(), p.server.Streams.Admission, p.until && p.Sub.Synced(), session.Removed(p.watch))
	if p.Drains {
		p.draining = nil
	}
	return reason
}

// sendBatch sends the events of a batch. The last one carries the position, if the
// client may resume there.
func (p *listPump) sendBatch() error {
	p.watchdog.Reset(p.server.Streams.WriteTimeout)
	defer p.watchdog.Stop()
	sent := 0
	var tail []*api.WatchListResponse // the last event of the watch, and the statuses after it
	for e := range p.Batch.Events() {
		if e.Type != stream.StatusChange {
			if err := p.send(tail, &sent); err != nil {
				return err
			}
			tail = tail[:0]
		}
		tail = append(tail, eventMessage(e))
	}
	// The position goes with its own event: a client gets the epoch of a snapshot
	// with end_of_snapshot at the latest.
	if position, ok := p.Sub.Position(); ok && p.Batch.Boundary() && len(tail) > 0 {
		tail[0].Position = position.String()
	}
	if err := p.send(tail, &sent); err != nil {
		return err
	}
	if sent > 0 {
		p.Wrote(sent)
	}
	return nil
}

func (p *listPump) send(messages []*api.WatchListResponse, sent *int) error {
	for _, m := range messages {
		size := proto.Size(m)
		if err := p.parcels.send(m, size, func() { p.watchdog.Stop() }, func() { p.watchdog.Reset(p.server.Streams.WriteTimeout) }); err != nil {
			return err
		}
		*sent += size
	}
	return nil
}

// goodbye ends the stream deliberately. The call itself ends without an error.
func (p *listPump) goodbye(reason stream.GoodbyeReason) error {
	p.watchdog.Reset(p.server.Streams.WriteTimeout)
	defer p.watchdog.Stop()
	err := p.out.Send(&api.WatchListResponse{Event: &api.WatchListResponse_Goodbye{
		Goodbye: &api.Goodbye{Reason: string(reason), RetryMs: uint32(p.retry.Milliseconds())},
	}})
	if err == nil {
		p.server.Streams.Metrics.EventsOut(metrics.GRPC, stream.Goodbye, 1)
		p.server.Streams.Metrics.Goodbye(metrics.GRPC, reason)
		p.farewell = reason
		p.Delivered.Events++
		p.Show()
	}
	return err
}

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
			Key: key, KeyEncoding: encoding, Revision: e.Resource.Revision,
		}}
	case stream.EndOfSnapshot:
		m.Event = &api.WatchListResponse_EndOfSnapshot{EndOfSnapshot: &api.EndOfSnapshot{
			Revision: e.Revision, Count: uint64(e.Count), Resumed: e.Resumed,
		}}
	case stream.Bookmark:
		m.Event = &api.WatchListResponse_Bookmark{Bookmark: &api.Bookmark{
			Revision: e.Revision, Skipped: e.Skipped, Horizon: e.Horizon, Conflated: e.Conflated,
		}}
	case stream.StatusChange:
		m.Event = &api.WatchListResponse_Status{Status: statusMessage(e)}
	}
	return &m
}

func statusMessage(e stream.Event) *api.Status {
	s := &api.Status{State: e.State.String(), Reason: e.Reason}
	if !e.Since.IsZero() {
		s.Since = timestamppb.New(e.Since)
	}
	return s
}
