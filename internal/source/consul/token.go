package consul

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"google.golang.org/grpc/metadata"
)

// Keys of gRPC metadata that Consul reads.
const (
	tokenKey       = "x-consul-token"
	consistencyKey = "x-consul-consistency-mode"
)

// maxTokenBytes is far beyond any ACL token, but not beyond a file named by
// mistake.
const maxTokenBytes = 4 << 10

// token reads the ACL token; "" where none is configured. Errors name the file,
// never its content.
func (c *Config) token() (string, error) {
	if c.TokenFile == "" {
		return "", nil
	}
	f, err := os.Open(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("ACL token: %w", reason(c.TokenFile, err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTokenBytes+1))
	if err != nil {
		return "", fmt.Errorf("ACL token: %w", reason(c.TokenFile, err))
	}
	token := string(bytes.TrimSpace(data))
	if !validToken(token) {
		return "", fmt.Errorf("ACL token: %s holds %d bytes: want one line of printable ASCII without spaces, the token's secret id",
			c.TokenFile, len(data))
	}
	return token, nil
}

// reason is the error prefixed with the file name, once.
func reason(file string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: %w", file, err)
}

func validToken(token string) bool {
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return false
		}
	}
	return token != "" && len(token) <= maxTokenBytes
}

// withToken returns a context for a call.
func withToken(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, tokenKey, token)
}

// consistent has the leader answer, once it has verified that it still is the
// leader.
func consistent(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, consistencyKey, "consistent")
}
