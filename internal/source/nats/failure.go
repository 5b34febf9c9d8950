package nats

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// failed adds the upstream and, if known, a remedy to an error, and hides secrets in it:
// the server may repeat what it was sent.
func (c *Config) failed(err error, secrets []string) error {
	if err == nil {
		return nil
	}
	return adapter.NewFailure(err, fmt.Sprintf("%s: %s%s", c, adapter.HideSecret(err.Error(), slices.Values(secrets)), c.hint(err)))
}

func (c *Config) hint(err error) string {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		return "; want a user with the permissions that docs/sources/nats.md lists"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return "; want credentials that the server accepts"
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return "; want a server with JetStream for this account, and a cluster that has a leader"
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return "; want the name of a bucket that exists"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return "; want a file that the gateway can read"
	case strings.Contains(err.Error(), "secure connection not available"):
		return "; want no tls if the server speaks none"
	case strings.Contains(err.Error(), "x509:"), strings.Contains(err.Error(), "tls:"):
		return "; want a certificate authority and a server name that fit the server"
	}
	return ""
}

// unanswered reports a request that reached its own time limit as a stalled
// server, and one that ended with the Watch call as the reason for that.
func unanswered(ctx context.Context, what string, err error) error {
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return cause
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("%w: no answer to a request for %s", stream.ErrStalled, what)
	}
	return err
}
