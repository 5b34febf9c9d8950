package main

import (
	"bytes"
	"strconv"
	"sync"

	"google.golang.org/grpc"

	api "github.com/watchtide/watchtide/openapi/watchtidev1"
)

// hub is a gRPC server as it is usually written: a channel for each call.
type hub struct {
	api.UnimplementedWatchServiceServer

	mu    sync.Mutex // guards the following field
	calls map[*call]struct{}
}

// call is one stream. Static after construction; events is never closed.
type call struct {
	events chan *api.WatchListResponse
	over   <-chan struct{}
}

// ahead is how many events a call may lag before it delays the others.
const ahead = 64

func newHub() *hub { return &hub{calls: map[*call]struct{}{}} }

// WatchList implements api.WatchServiceServer.
func (h *hub) WatchList(_ *api.WatchListRequest, out grpc.ServerStreamingServer[api.WatchListResponse]) error {
	c := &call{events: make(chan *api.WatchListResponse, ahead), over: out.Context().Done()}
	h.join(c)
	defer h.leave(c)
	// The head of the HTTP response is sent only with the first message.
	if err := out.Send(&api.WatchListResponse{Event: &api.WatchListResponse_Status{Status: &api.Status{State: "in_sync"}}}); err != nil {
		return err
	}
	for {
		select {
		case <-c.over:
			return out.Context().Err()
		case e := <-c.events:
			if err := out.Send(e); err != nil {
				return err
			}
		}
	}
}

func (h *hub) join(c *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[c] = struct{}{}
}

func (h *hub) leave(c *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.calls, c)
}

// publish waits for every call, since nothing may be lost.
func (h *hub) publish(event []byte) {
	m := message(event)
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.calls {
		select {
		case c.events <- m:
		case <-c.over:
		}
	}
}

// message makes an upsert of an event. grpc-gateway writes the value in base64, as
// any field of bytes, so that the load generator cannot read the time in it: it is
// the revision too.
func message(event []byte) *api.WatchListResponse {
	return &api.WatchListResponse{Event: &api.WatchListResponse_Upsert{Upsert: &api.Upsert{
		Resource: &api.Resource{Key: "resource", Revision: timeOf(event), Value: event},
	}}}
}

// timeOf returns the member "at" of an event, 0 if there is none.
func timeOf(event []byte) uint64 {
	_, after, _ := bytes.Cut(event, []byte(`"at":`))
	digits := after[:len(after)-len(bytes.TrimLeft(after, "0123456789"))]
	at, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return 0
	}
	return at
}
