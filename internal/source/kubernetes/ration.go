package kubernetes

import (
	"context"
	"fmt"
	"io"

	"github.com/watchtide/watchtide/stream"
)

// defaultMaxObject is how many bytes one object, or one answer that is not a list, may have.
// The server stores 1.5 MiB at most, which JSON may write several times longer.
const defaultMaxObject = 16 << 20

// copies is how many times the bytes of an object are in memory while it is read: in
// the decoder, as an object, and as the value made of it.
const copies = 3

var errTooLong = fmt.Errorf("%w: an object of more than %d MiB: want one that Kubernetes can store", stream.ErrInvalid, defaultMaxObject>>20)

// ration is the body of an answer. Each object of it may have a limited number of
// bytes, which count towards the memory of the watch as they arrive, and before they
// are read on. Of a compressed answer the uncompressed bytes count.
type ration struct {
	// Static after construction.
	ctx  context.Context
	body io.Reader
	most int64             // bytes of an object
	hold func(bytes int64) // see stream.SinkExtension

	// Owned by the reader of the body.
	read int64 // since the object began
}

// Read implements io.Reader.
func (r *ration) Read(p []byte) (int, error) {
	left := r.most - r.read
	if left <= 0 {
		return 0, errTooLong
	}
	n, err := r.body.Read(p[:min(int64(len(p)), left)])
	r.read += int64(n)
	r.hold(copies * int64(n))
	if cause := context.Cause(r.ctx); cause != nil {
		return 0, cause // it may have been too much
	}
	return n, err
}

// take ends an object. It returns how many bytes are held for it, which the caller
// releases once the object is passed on.
func (r *ration) take() int64 {
	held := copies * r.read
	r.read = 0
	return held
}
