package grpc

import (
	"fmt"

	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

// The events of an upstream, in terms of the protocol.

type message = pb.WatchListResponse

func reset() *message {
	return &message{Event: &pb.WatchListResponse_Reset_{Reset_: &pb.Reset{Reason: "initial"}}}
}

func upsert(key string, revision uint64, value string) *message {
	return &message{Event: &pb.WatchListResponse_Upsert{Upsert: &pb.Upsert{
		Resource: &pb.Resource{Key: key, Revision: revision, Value: []byte(value)}}}}
}

func remove(key string, revision uint64) *message {
	return &message{Event: &pb.WatchListResponse_Delete{Delete: &pb.Delete{Key: key, Revision: revision}}}
}

func endOfSnapshot(revision, count uint64) *message {
	return &message{Event: &pb.WatchListResponse_EndOfSnapshot{
		EndOfSnapshot: &pb.EndOfSnapshot{Revision: revision, Count: count}}}
}

func caughtUp(revision uint64) *message {
	m := endOfSnapshot(revision, 0)
	m.GetEndOfSnapshot().Resumed = true
	return m
}

func bookmark(revision uint64) *message {
	return &message{Event: &pb.WatchListResponse_Bookmark{Bookmark: &pb.Bookmark{Revision: revision}}}
}

func outage(revision, horizon uint64) *message {
	return &message{Event: &pb.WatchListResponse_Bookmark{Bookmark: &pb.Bookmark{Revision: revision, Horizon: horizon}}}
}

func freshness(state, reason string) *message {
	return &message{Event: &pb.WatchListResponse_Status{Status: &pb.Status{State: state, Reason: reason}}}
}

func goodbye(reason string, retryMS uint32) *message {
	return &message{Event: &pb.WatchListResponse_Goodbye{Goodbye: &pb.Goodbye{Reason: reason, RetryMs: retryMS}}}
}

// at sets the position of an event.
func at(position string, m *message) *message {
	m.Position = position
	return m
}

// calls is a Sink that records its calls, in one line each.
type calls struct {
	stream.PlainSink
	lines []string
	fail  string // the call that fails, as it would be recorded
}

func (c *calls) add(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	c.lines = append(c.lines, line)
	if line == c.fail {
		return errSink
	}
	return nil
}

func (c *calls) Reset(epoch string) error { return c.add("reset %s", epoch) }

func (c *calls) Upsert(r stream.Resource) error {
	if r.Encoding != "" {
		return c.add("upsert %q %d %s %s", r.Key, r.Revision, r.Value, r.Encoding)
	}
	return c.add("upsert %q %d %s", r.Key, r.Revision, r.Value)
}

func (c *calls) Delete(key string, revision uint64) error {
	return c.add("delete %q %d", key, revision)
}

func (c *calls) Commit(revision uint64) error { return c.add("commit %d", revision) }

func (c *calls) RaiseHorizon(revision uint64) error { return c.add("horizon %d", revision) }

func (c *calls) Status(s stream.State, reason string) error { return c.add("status %s %s", s, reason) }
