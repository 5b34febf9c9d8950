package adapter

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TooLarge reports whether a call has ended because a message is larger than the maximum.
// gRPC refuses it by its length, and reads no more of it.
func TooLarge(err error) bool {
	st, ok := status.FromError(err)
	return ok && st.Code() == codes.ResourceExhausted && strings.Contains(st.Message(), "larger than max")
}
