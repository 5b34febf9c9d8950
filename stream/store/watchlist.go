package store

import (
	"context"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// WatchList implements pb.WatchServiceServer. Only watches that were given a
// Source or a Writer exist.
func (s *Store) WatchList(r *pb.WatchListRequest, out grpc.ServerStreamingServer[pb.WatchListResponse]) error {
	w := s.find(r.GetWatch())
	if w == nil {
		return unknownWatch(r.GetWatch())
	}
	if err := notNarrowed("", r); err != nil {
		return err
	}
	sub := w.log.Subscribe(subscribeOptions(r))
	defer sub.Close()
	f := &feed{sub: sub, prefix: r.GetPrefix(), out: out, until: r.GetUntilEndOfSnapshot()}
	return f.run(out.Context())
}

func subscribeOptions(r *pb.WatchListRequest) log.SubscribeOptions {
	// There is no other replica, so there is no wait for a position that is ahead.
	o := log.SubscribeOptions{AheadWait: time.Nanosecond}
	if r.GetPosition() == "" {
		return o
	}
	p, err := stream.ParsePosition(r.GetPosition())
	if err != nil || p.Watch != r.GetWatch() || r.GetPrefix() != "" {
		o.Invalid = true
		return o
	}
	o.Resume = &p
	return o
}

// feed moves the events of one subscription to one caller. Owned by the
// goroutine of the call.
type feed struct {
	sub    *log.Subscription
	prefix string // of the keys that the caller wants
	batch  log.Batch
	out    grpc.ServerStreamingServer[pb.WatchListResponse]
	until  bool // end at end_of_snapshot
	count  int  // of resources in the snapshot so far
}

// run sends until the caller disconnects or has everything it requested.
func (f *feed) run(ctx context.Context) error {
	for {
		for f.sub.Next(&f.batch) {
			if err := f.sendBatch(); err != nil {
				return err
			}
		}
		if f.until && f.sub.Synced() {
			return f.out.Send(goodbye(stream.GoodbyeComplete))
		}
		if err := f.wait(ctx); err != nil {
			return err
		}
	}
}

// wait returns when Next may have more.
func (f *feed) wait(ctx context.Context) error {
	var due <-chan time.Time
	if deadline := f.sub.Deadline(); !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.sub.Changed():
	case <-due:
	}
	return nil
}

// sendBatch sends a flush. The position is on the last event that is not a status,
// since a status changes nothing: a client that acts on end_of_snapshot need not
// wait for what may follow. A caller that wants only some of the keys is given no
// positions, so that it always begins with a snapshot: the log's are those of all keys.
func (f *feed) sendBatch() error {
	var tail []*pb.WatchListResponse // the last such event, and the statuses after it
	for e := range f.batch.Events() {
		if f.prefix != "" && !f.narrow(&e) {
			continue
		}
		if e.Type != stream.StatusChange {
			if err := f.send(tail); err != nil {
				return err
			}
			tail = tail[:0]
		}
		tail = append(tail, message(e))
	}
	if p, ok := f.sub.Position(); ok && f.prefix == "" && f.batch.Boundary() && len(tail) > 0 {
		tail[0].Position = p.String()
	}
	return f.send(tail)
}

// narrow reports whether a caller that wants only some of the keys gets an event, and
// makes its count that of these keys.
func (f *feed) narrow(e *stream.Event) bool {
	switch e.Type {
	case stream.Reset:
		f.count = 0
	case stream.Upsert:
		if !strings.HasPrefix(e.Resource.Key, f.prefix) {
			return false
		}
		f.count++
	case stream.Delete:
		return strings.HasPrefix(e.Resource.Key, f.prefix)
	case stream.EndOfSnapshot:
		e.Count = f.count
	}
	return true
}

// send passes messages on; they are not touched afterwards.
func (f *feed) send(messages []*pb.WatchListResponse) error {
	for _, m := range messages {
		if err := f.out.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// message makes the message of an event. Its value aliases the log.
func message(e stream.Event) *pb.WatchListResponse {
	var m pb.WatchListResponse
	switch e.Type {
	case stream.Reset:
		m.Event = &pb.WatchListResponse_Reset_{Reset_: &pb.Reset{Reason: e.Reason}}
	case stream.Upsert:
		m.Event = &pb.WatchListResponse_Upsert{Upsert: &pb.Upsert{Resource: resource(e.Resource)}}
	case stream.Delete:
		key, encoding := stream.WireKey(e.Resource.Key)
		m.Event = &pb.WatchListResponse_Delete{Delete: &pb.Delete{
			Key: key, KeyEncoding: encoding, Revision: e.Resource.Revision,
		}}
	case stream.EndOfSnapshot:
		m.Event = &pb.WatchListResponse_EndOfSnapshot{EndOfSnapshot: &pb.EndOfSnapshot{
			Revision: e.Revision, Count: uint64(e.Count), Resumed: e.Resumed,
		}}
	case stream.Bookmark:
		m.Event = &pb.WatchListResponse_Bookmark{Bookmark: &pb.Bookmark{
			Revision: e.Revision, Skipped: e.Skipped, Horizon: e.Horizon,
		}}
	case stream.StatusChange:
		m.Event = &pb.WatchListResponse_Status{Status: &pb.Status{
			State: e.State.String(), Since: timestamppb.New(e.Since), Reason: e.Reason,
		}}
	}
	return &m
}

func goodbye(reason stream.GoodbyeReason) *pb.WatchListResponse {
	return &pb.WatchListResponse{Event: &pb.WatchListResponse_Goodbye{Goodbye: &pb.Goodbye{Reason: string(reason)}}}
}

func resource(r stream.Resource) *pb.Resource {
	key, encoding := stream.WireKey(r.Key)
	return &pb.Resource{Key: key, KeyEncoding: encoding, Revision: r.Revision, Value: r.Value, Encoding: r.Encoding}
}
