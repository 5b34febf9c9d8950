package consul

import (
	"errors"
	"strings"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// failed adds the upstream to a gRPC error, and the remedy; the token is redacted in
// it.
func (c *Config) failed(err error, token string) error {
	var already *adapter.Failure
	if errors.As(err, &already) {
		return err
	}
	text := c.where() + ": " + err.Error() + c.hint(err)
	if token != "" {
		text = strings.ReplaceAll(text, token, "[hidden]")
	}
	return adapter.NewFailure(err, text)
}

// hint suggests a remedy, where the error indicates one.
func (c *Config) hint(err error) string {
	text := err.Error()
	has := func(s string) bool { return strings.Contains(text, s) }
	switch code := status.Code(err); {
	case unknownToken(err) && c.TokenFile == "":
		return "; want token_file with a token that may read this type: the server has ACLs on"
	case unknownToken(err):
		return "; want a token that exists in " + c.TokenFile + ": this one is unknown, or was deleted"
	case code == codes.PermissionDenied:
		return "; want a token whose policy allows to list and to read this type"
	case code == codes.Unauthenticated && c.TokenFile == "":
		return "; want token_file"
	case code == codes.InvalidArgument && has("not registered"):
		return "; want a type that this server has, such as demo.v2.Artist"
	case code == codes.Unimplemented:
		return "; want the gRPC port of Consul 1.18 or later"
	case code == codes.ResourceExhausted && has("larger than max"):
		return "; want a larger max_message_bytes, or name_prefix: a list is one message"
	case code == codes.Internal && has("larger than max"):
		return "; want the leader's address, or name_prefix: a server that is not the leader passes on no larger list"
	case has("HTTP/1.1 header"):
		return "; want the gRPC port (8502, or 8503 with TLS), not the HTTP port"
	case c.TLS == nil && has("error reading server preface"):
		return "; want TLS if that is what the port speaks (8503 in Consul's documentation)"
	}
	return ""
}

// unknownToken reports whether Consul does not know the token, for which it
// has no error code of its own.
func unknownToken(err error) bool {
	code := status.Code(err)
	return (code == codes.Internal || code == codes.Unauthenticated) && strings.Contains(err.Error(), "ACL not found")
}

// passing returns why the servers cannot answer right now, as they report during
// an election or when they get too many requests; empty: it is something else.
func passing(err error) string {
	switch s := status.Convert(err); s.Code() {
	case codes.Internal, codes.FailedPrecondition, codes.Unknown:
		for _, sign := range []string{"leader", "consisten", "code = Unavailable"} {
			if strings.Contains(s.Message(), sign) {
				return "no leader: " + s.Message()
			}
		}
	case codes.ResourceExhausted:
		if strings.Contains(s.Message(), "rate limit") {
			return s.Message()
		}
	}
	return ""
}
