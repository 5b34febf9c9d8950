package limits

import (
	"context"
	"net/http"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// operatorKey is the context key of requests to the operators' handler. The public
// handler names the kind of a problem, but does not reveal addresses, files,
// clients or profiles.
type operatorKey struct{}

// ForOperators marks the requests to a handler as those of operators.
func ForOperators(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(WithOperator(r.Context())))
	})
}

// WithOperator returns the context of a request of an operator.
func WithOperator(ctx context.Context) context.Context {
	return context.WithValue(ctx, operatorKey{}, true)
}

// IsOperator reports whether a request comes from an operator: through the operators' handler,
// or from a principal with the operators' role. Calls over gRPC never do.
func IsOperator(ctx context.Context) bool {
	return ctx.Value(operatorKey{}) != nil
}

// ReasonFor returns as much of the reason of a status as the caller may know.
func ReasonFor(ctx context.Context, s stream.Status) string {
	if IsOperator(ctx) {
		return s.Full()
	}
	return s.Reason
}

// LastErrorFor returns as much of the last error of an upstream as the caller may
// know.
func LastErrorFor(ctx context.Context, u watch.Upstream) string {
	if IsOperator(ctx) {
		return u.LastError
	}
	return u.LastReason
}
