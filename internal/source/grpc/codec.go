package grpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// codec is gRPC's own, but remembers that a message could not be read: gRPC
// reports that with the same code as other internal errors. Used by one call,
// on the receiving goroutine.
type codec struct {
	encoding.CodecV2
	bad error
}

func newCodec() *codec {
	return &codec{CodecV2: encoding.GetCodecV2(proto.Name)}
}

// Unmarshal implements encoding.CodecV2.
func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	if err != nil {
		c.bad = err
	}
	return err
}
