package nats

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/watchtide/watchtide/stream"
)

// greet reads what the server sends first, in plain text, and secures the connection
// if the configuration or the server wants that. A server that offers no TLS where it
// is wanted is left to the library, which refuses it. It returns the greeting, and the
// connection behind it.
func (c *Config) greet(ctx context.Context, conn net.Conn, address string) ([]byte, net.Conn, error) {
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, nil, err
	}
	line, err := readLine(conn)
	if err != nil {
		return nil, nil, err
	}
	var server struct {
		Required  bool `json:"tls_required"`
		Available bool `json:"tls_available"`
	}
	if text, ok := bytes.CutPrefix(line, []byte("INFO ")); ok {
		_ = json.Unmarshal(text, &server) // the library reports what is wrong
	}
	if server.Required || server.Available && c.secure() {
		if conn, err = c.secured(ctx, conn, address); err != nil {
			return nil, nil, err
		}
	}
	return line, conn, conn.SetDeadline(time.Time{})
}

// secure reports whether the connection must be secure.
func (c *Config) secure() bool { return c.TLS != nil || strings.Contains(c.URL, "tls://") }

// secured returns the connection with TLS on top.
func (c *Config) secured(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	config := &tls.Config{}
	if c.TLS != nil {
		config = c.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", nats.ErrTLS, err)
	}
	return secured, nil
}

// readLine reads a line and nothing behind it, which may be encrypted.
func readLine(conn net.Conn) (line []byte, err error) {
	for next := make([]byte, 1); ; {
		if _, err := conn.Read(next); err != nil {
			return nil, err
		}
		if line = append(line, next[0]); next[0] == '\n' {
			return line, nil
		}
		if len(line) == maxLine {
			return nil, fmt.Errorf("%w: a greeting of more than %d bytes", stream.ErrInvalid, maxLine)
		}
	}
}
