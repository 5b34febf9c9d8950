package rpc

import (
	"context"
	"fmt"
	"sync"

	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// parcel is a message on its way to a gRPC client. gRPC queues messages, so a method
// does not see whether its client reads. A parcel therefore keeps its part of a
// budget until the transport has written its last byte, or the connection is closed.
// It closes the connection itself if the client reads it more slowly than
// Config.MinRate: there is no other way to drop the queued messages of one call.
//
// All methods may be called from any goroutine.
type parcel struct {
	// Static after construction.
	message proto.Message
	conn    *clientConn // nil: not known
	pace    *netconn.Pace

	mu    sync.Mutex    // guards the following fields
	claim *limits.Claim // may be nil
	left  int           // bytes that are not written yet
}

const (
	// ParcelPiece is the step in which the progress of a parcel is seen.
	ParcelPiece = 16 << 10
	// leastBuffer is the smallest size for which gRPC reports that it releases a
	// buffer.
	leastBuffer = 1<<10 + 1
)

// newParcel returns a parcel, which owns the claim.
func (s *server) newParcel(ctx context.Context, m proto.Message, c *limits.Claim) *parcel {
	p := &parcel{message: m, conn: connOf(ctx), claim: c}
	p.pace = netconn.NewPace(max(1, s.Streams.MinRate), ParcelPiece, func() {
		if p.conn != nil {
			go p.conn.Close() // in a goroutine: it stops the pace, which waits for this
		}
	})
	if !p.conn.carry(p) {
		p.settle()
	}
	return p
}

// pack returns the bytes of the message, cut into pieces.
func (p *parcel) pack() (mem.BufferSlice, error) {
	size := proto.Size(p.message)
	raw, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(make([]byte, 0, max(size, leastBuffer)), p.message)
	if err != nil {
		p.done()
		return nil, err
	}
	p.message = nil
	pieces := make([][]byte, max(1, size/ParcelPiece))
	for i := range pieces[:len(pieces)-1] {
		pieces[i], raw = raw[:ParcelPiece:ParcelPiece], raw[ParcelPiece:]
	}
	pieces[len(pieces)-1] = raw // up to two pieces long, and never too small
	p.mu.Lock()
	p.left = size
	p.mu.Unlock()
	if size == 0 {
		p.done()
	}
	out := make(mem.BufferSlice, len(pieces))
	for i := range pieces {
		out[i] = mem.NewBuffer(&pieces[i], p)
	}
	return out, nil
}

// Get implements mem.BufferPool. It is never called.
func (p *parcel) Get(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

// Put implements mem.BufferPool: a piece was written or dropped.
func (p *parcel) Put(piece *[]byte) {
	n := len(*piece)
	p.pace.Move(n)
	p.mu.Lock()
	p.left -= n
	left := p.left
	p.mu.Unlock()
	if left <= 0 {
		p.done()
	}
}

// done is called when the transport no longer holds any of the parcel.
func (p *parcel) done() {
	p.conn.forget(p)
	p.settle()
}

// settle releases the claim.
func (p *parcel) settle() {
	p.pace.Stop()
	p.mu.Lock()
	c := p.claim
	p.claim = nil
	p.mu.Unlock()
	c.Release()
}

// parcelCodec is gRPC's own codec, extended to parcels.
type parcelCodec struct{ encoding.CodecV2 }

func newParcelCodec() parcelCodec { return parcelCodec{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2.
func (c parcelCodec) Marshal(v any) (mem.BufferSlice, error) {
	if p, ok := v.(*parcel); ok {
		return p.pack()
	}
	return c.CodecV2.Marshal(v)
}

// parcels sends the messages of a stream, and now and then one of them as a parcel.
// The messages between two parcels are few bytes.
//
// Owned by the goroutine that sends.
type parcels struct {
	// Static after construction.
	server *server
	client limits.Client
	out    grpc.ServerStream

	loose int // bytes that were sent since the last parcel
}

// send sends a message of size bytes. If the transport may hold much, it first waits
// for room in the budget, and calls pause before and resume after that wait.
func (s *parcels) send(m proto.Message, size int, pause, resume func()) error {
	if s.loose += size; s.loose < ParcelPiece {
		return s.out.SendMsg(m)
	}
	ctx := s.out.Context()
	pause()
	c, err := s.server.Answers.Bytes.Take(ctx, s.client, int64(s.loose))
	resume()
	if err != nil {
		return fmt.Errorf("waiting for room in the answer budget: %w", err)
	}
	s.loose = 0
	return s.out.SendMsg(s.server.newParcel(ctx, m, c))
}
