package grpc

import (
	"errors"
	"fmt"

	"github.com/watchtide/watchtide/internal/source/adapter"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

// decode reads and checks a message.
func decode(m *pb.WatchListResponse) (e adapter.Event, err error) {
	e.Position = m.GetPosition()
	switch of := m.GetEvent().(type) {
	case *pb.WatchListResponse_Reset_:
		e.Type = adapter.Reset
	case *pb.WatchListResponse_Upsert:
		e.Type = adapter.Upsert
		e.Resource, err = decodeResource(of.Upsert.GetResource())
	case *pb.WatchListResponse_Delete:
		e.Type, e.Resource.Revision = adapter.Delete, of.Delete.GetRevision()
		e.Resource.Key, err = decodeKey(of.Delete.GetKey(), of.Delete.GetKeyEncoding())
	case *pb.WatchListResponse_EndOfSnapshot:
		e.Type = adapter.EndOfSnapshot
		e.Revision, e.Count = of.EndOfSnapshot.GetRevision(), of.EndOfSnapshot.GetCount()
	case *pb.WatchListResponse_Bookmark:
		e.Type = adapter.Bookmark
		e.Revision, e.Horizon, e.Conflated = of.Bookmark.GetRevision(), of.Bookmark.GetHorizon(), of.Bookmark.GetConflated()
	case *pb.WatchListResponse_Status:
		e.Type, e.Reason = adapter.Status, of.Status.GetReason()
		e.State, _ = stream.ParseState(of.Status.GetState())
	case nil:
		if e.Position == "" && len(m.ProtoReflect().GetUnknown()) == 0 {
			err = errors.New("empty message: want an event")
		}
	}
	return e, err
}

// decodeResource reads a resource. Its value aliases the message, which has no other
// user.
func decodeResource(m *pb.Resource) (stream.Resource, error) {
	if m == nil {
		return stream.Resource{}, errors.New("upsert without a resource")
	}
	key, err := decodeKey(m.GetKey(), m.GetKeyEncoding())
	if err != nil {
		return stream.Resource{}, err
	}
	value, ok := stream.CompactJSON(m.GetValue())
	switch {
	case !ok:
		err = fmt.Errorf("value of key %.80q is %.40q: want JSON text in UTF-8", key, m.GetValue())
	case m.GetRevision() == 0:
		err = fmt.Errorf("revision of key %.80q is 0: want 1 or more", key)
	case m.GetEncoding() != "" && m.GetEncoding() != stream.Base64:
		err = fmt.Errorf("encoding of key %.80q is %.40q: want %q or nothing", key, m.GetEncoding(), stream.Base64)
	}
	return stream.Resource{Key: key, Revision: m.GetRevision(), Value: value, Encoding: m.GetEncoding()}, err
}

func decodeKey(wire, encoding string) (string, error) {
	key, err := stream.KeyFromWire(wire, encoding)
	if err != nil {
		return "", fmt.Errorf("key %.80q: %w", wire, err)
	}
	return key, nil
}
