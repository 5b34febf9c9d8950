package etcd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"
)

// failed adds the upstream and a hint to an error.
func (s *Source) failed(e endpoint, err error) error {
	if err == nil {
		return nil
	}
	err = rpctypes.Error(err)
	through := adapter.Through(adapter.DialOptions{Network: s.config.network}.Proxy(e.address))
	return adapter.NewFailure(err, fmt.Sprintf("etcd %s%s, prefix %q: %s%s", e.address, through, s.keys.prefix, words(err), s.hint(e, err)))
}

// noneOf is the error if no endpoint answered.
func noneOf(failures []error) error {
	if len(failures) == 1 {
		return failures[0]
	}
	texts := make([]string, len(failures))
	for i, err := range failures {
		texts[i] = err.Error()
	}
	return adapter.NewFailure(errors.Join(failures...), "no endpoint answers: "+strings.Join(texts, "; "))
}

// words is the text of the error, without gRPC's wrapping: of
//
//	connection error: desc = "transport: Error while dialing: dial tcp …: connection refused"
//
// the part that begins with "dial".
func words(err error) string {
	text := err.Error()
	if st, ok := status.FromError(err); ok && st.Message() != "" {
		text = st.Message()
	}
	if quoted, ok := strings.CutPrefix(text, "connection error: desc = "); ok {
		if inner, err := strconv.Unquote(quoted); err == nil {
			text = inner
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "transport: "), "Error while dialing: ")
}

// hint suggests a remedy, where the error indicates one.
func (s *Source) hint(e endpoint, err error) string {
	secure := s.config.TLS != nil || e.scheme == "https"
	switch text := err.Error(); {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Sprintf("; user %q wants a role with permission to read %s", s.config.Username, s.keys)
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return "; the cluster wants a user name and a password"
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return fmt.Sprintf("; want the password of user %q", s.config.Username)
	case !secure && strings.Contains(text, "error reading server preface"):
		return "; want https:// if that is what the member speaks"
	case secure && strings.Contains(text, "authentication handshake failed: EOF"):
		return "; want http:// if the member does not speak TLS"
	}
	return ""
}
