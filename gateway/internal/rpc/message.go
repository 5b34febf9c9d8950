package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	// maxRequest is the largest message of a call that writes nothing: a key, a
	// prefix and a page token.
	maxRequest = 16 << 10
	// MaxMessage is the largest message of a call that writes: a value, its
	// watch and its key.
	MaxMessage = authz.MaxValue + maxRequest
)

// incoming reads a message of a gRPC call. gRPC itself has one limit for all methods,
// reads as much as a client announces, and waits for it forever.
//
// Owned by the goroutine of the call.
type incoming struct {
	// Static after construction.
	server *server
	ctx    context.Context
	writes bool // the message may be a value
	many   bool // there may be no further message

	claim *limits.Claim // nil: the message is small; it must be released
}

// messageStream is the interface of gRPC's own transports through which a call reads
// its message. Other transports, such as those within a process, do not have it.
type messageStream interface {
	grpc.ServerTransportStream
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	WriteStatus(*status.Status) error
}

// receive reads the message into m. other reads it the way gRPC would.
func (in *incoming) receive(m any, other func(any) error) error {
	stream, ok := grpc.ServerTransportStreamFromContext(in.ctx).(messageStream)
	into, isProto := m.(proto.Message)
	if !ok || !isProto {
		return other(m)
	}
	watch := newMessageWatch(stream)
	defer watch.stop()
	err := in.read(stream, watch, into)
	switch {
	case watch.late.Load():
		return lateMessage()
	case errors.Is(err, io.EOF) && !in.many, errors.Is(err, io.ErrUnexpectedEOF):
		return problem.New(http.StatusBadRequest, "the message of the call broke off")
	}
	return err
}

func (in *incoming) read(stream messageStream, watch *messageWatch, m proto.Message) error {
	var header [5]byte // whether it is compressed, and the length
	if err := stream.ReadMessageHeader(header[:]); err != nil {
		return err
	}
	if header[0] != 0 {
		return status.Error(codes.Unimplemented, "the message is compressed: want it as it is")
	}
	size := int64(header[1])<<24 | int64(header[2])<<16 | int64(header[3])<<8 | int64(header[4])
	if p := in.admit(size); p != nil {
		return p
	}
	raw := bytes.NewBuffer(make([]byte, 0, size))
	for size > 0 {
		piece, err := stream.Read(int(min(size, ParcelPiece)))
		if err != nil {
			return err
		}
		size -= int64(piece.Len())
		for _, b := range piece {
			raw.Write(b.ReadOnlyData())
		}
		piece.Free()
		watch.moved()
	}
	if err := proto.Unmarshal(raw.Bytes(), m); err != nil {
		return status.Errorf(codes.InvalidArgument, "the message cannot be read: %v", err)
	}
	return nil
}

// admit decides on a message by its announced length.
func (in *incoming) admit(size int64) *problem.Problem {
	limit := int64(maxRequest)
	if in.writes {
		limit = in.server.Lookup.LargestValue() + maxRequest
	}
	if size > limit {
		return problem.New(http.StatusRequestEntityTooLarge, "the message has %d bytes: want at most %d", size, limit)
	}
	if size <= maxRequest {
		return nil
	}
	var p *problem.Problem
	in.claim, p = in.server.Bodies.Claim(in.server.Proxies.ClientOfCall(in.ctx), size)
	return p
}

// messageWatch ends a call whose message does not arrive.
type messageWatch struct {
	// Static after construction.
	timer *time.Timer
	until time.Time

	late atomic.Bool
}

func newMessageWatch(stream messageStream) *messageWatch {
	w := &messageWatch{until: time.Now().Add(unary.BodyTimeout)}
	w.timer = time.AfterFunc(Timeout, func() {
		w.late.Store(true)
		_ = stream.WriteStatus(lateMessage().GRPCStatus()) // this ends the read
	})
	return w
}

func lateMessage() *problem.Problem {
	return problem.New(http.StatusRequestTimeout, "the message of the call did not arrive: want something of it within %s, and all of it within %s", Timeout, unary.BodyTimeout)
}

// moved records that some data has arrived.
func (w *messageWatch) moved() {
	w.timer.Reset(min(Timeout, time.Until(w.until)))
}

func (w *messageWatch) stop() { w.timer.Stop() }

// description describes the service with methods that bound their messages, and that are
// those of the server for the call; interceptStream does the same for streams.
func (s current) description() *grpc.ServiceDesc {
	desc := api.WatchService_ServiceDesc
	desc.Methods = slices.Clone(desc.Methods)
	for i := range desc.Methods {
		m := &desc.Methods[i]
		handler, writes := m.Handler, "/"+desc.ServiceName+"/"+m.MethodName == api.WatchService_PutResource_FullMethodName
		m.Handler = func(_ any, ctx context.Context, decode func(any) error, i grpc.UnaryServerInterceptor) (any, error) {
			one := s()
			connOf(ctx).called()
			ctx, answer := one.Answers.Attach(ctx, one.Proxies.ClientOfCall(ctx)) // identify may charge the message to a principal
			defer answer.Release()
			in := &incoming{server: one, ctx: ctx, writes: writes}
			out, err := handler(one, ctx, func(m any) error { return in.receive(m, decode) }, i)
			if err != nil {
				in.claim.Release()
				return nil, err
			}
			return one.newParcel(ctx, out.(proto.Message), answer.HandOver(in.claim)), nil
		}
	}
	return &desc
}

// boundedStream is a stream that bounds the messages that it reads.
type boundedStream struct {
	grpc.ServerStream
	server *server
	many   bool // the client sends several
}

// RecvMsg implements grpc.ServerStream.
func (s boundedStream) RecvMsg(m any) error {
	in := &incoming{server: s.server, ctx: s.Context(), many: s.many}
	return in.receive(m, s.ServerStream.RecvMsg)
}
