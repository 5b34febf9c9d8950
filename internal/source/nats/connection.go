package nats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// connection is one connection to one server, for one Watch call. The library
// does not reconnect when it is lost: that would hide the outage.
//
// Owned by the goroutine that runs Watch.
type connection struct {
	conn   *nats.Conn
	meter  *meter
	hidden []string        // what no message may contain
	closed <-chan struct{} // closed after the library's last callback
	ended  <-chan struct{} // closed when the consumer has ended; nil: there is none
}

// connect tries the servers in random order. end is called with the reason when
// the connection is lost, or the server rejects something. hold is told of the bytes
// of messages, see delivery.held.
func (c *Config) connect(ctx context.Context, end context.CancelCauseFunc, hold func(bytes int64)) (*connection, error) {
	who, secrets, err := c.login()
	if err != nil {
		return nil, c.failed(err, secrets)
	}
	dial := &dialer{ctx: ctx, config: c, meter: new(meter), hold: hold}
	closed := make(chan struct{})
	conn, err := nats.Connect(strings.Join(servers(c.URL), ","), append(who,
		nats.Name("watchtide"), nats.NoReconnect(), nats.SkipHostLookup(),
		nats.IgnoreDiscoveredServers(), // credentials are for the configured servers only
		nats.SetCustomDialer(dial),
		nats.Timeout(c.StallAfter), nats.FlusherTimeout(c.StallAfter),
		nats.PingInterval(-1), // the heartbeats suffice, and an answer may have to wait behind large values
		nats.CustomInboxPrefix(c.InboxPrefix),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if !errors.Is(err, nats.ErrBadHeaderMsg) { // a writer can write any header; the message arrives without it
				end(c.failed(err, secrets))
			}
		}),
		nats.ClosedHandler(func(conn *nats.Conn) {
			end(c.failed(lost(conn.LastError()), secrets))
			close(closed)
		}),
	)...)
	switch {
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = c.failed(dial.explain(err), secrets)
	}
	if err != nil && conn != nil {
		conn.Close()
		<-closed
	}
	return &connection{conn: conn, meter: dial.meter, hidden: secrets, closed: closed}, err
}

// lost describes how a connection ended.
func lost(err error) error {
	if err == nil || errors.Is(err, nats.ErrBadHeaderMsg) {
		return errors.New("the server closed the connection")
	}
	return fmt.Errorf("the connection is lost: %w", err)
}

// login returns the configured way to authenticate, and the secrets that it uses.
func (c *Config) login() (options []nats.Option, secrets []string, err error) {
	if c.TLS != nil {
		options = append(options, nats.Secure(c.TLS.Clone()))
	}
	switch {
	case c.CredentialsFile != "":
		secrets, err = lines(c.CredentialsFile)
		return append(options, nats.UserCredentials(c.CredentialsFile)), secrets, err
	case c.NKeyFile != "":
		if secrets, err = lines(c.NKeyFile); err != nil {
			return nil, nil, err
		}
		nkey, err := nats.NkeyOptionFromSeed(c.NKeyFile)
		return append(options, nkey), secrets, err
	case c.TokenFile != "":
		token, err := adapter.ReadSecret(c.TokenFile)
		return append(options, nats.Token(token)), []string{token}, err
	case c.Username != "":
		password, err := adapter.ReadSecret(c.PasswordFile)
		return append(options, nats.UserInfo(c.Username, password)), []string{password}, err
	}
	return options, nil, nil
}

// lines returns the lines of a file that are a single word: a JWT or a seed is one.
func lines(file string) (words []string, err error) {
	text, err := adapter.ReadSecret(file)
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 1 {
			words = append(words, f[0])
		}
	}
	return words, err
}

// close ends the connection, whose context has ended, and waits for the library.
func (c *connection) close() {
	c.conn.Close()
	<-c.closed
	if c.ended != nil {
		<-c.ended
	}
}

// dialer makes connections that end with a context, and that refuse what is too
// large, which the library does not support. So it makes them secure itself: the
// library would do that on top. It is called by one goroutine, that of Connect.
type dialer struct {
	// Static after construction.
	ctx    context.Context
	config *Config
	meter  *meter
	hold   func(bytes int64)

	// Atomic.
	failed atomic.Pointer[error] // the last that could not be made
}

// SkipTLSHandshake tells the library that the connection is secure.
func (d *dialer) SkipTLSHandshake() bool { return true }

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, d.config.StallAfter)
	defer cancel()
	conn, err := d.config.network(ctx, network, address)
	if err != nil {
		d.failed.Store(&err)
		return nil, err
	}
	// A pending write of the library must not delay the end either.
	stop := context.AfterFunc(d.ctx, func() { _ = conn.Close() })
	greeted, secured, err := d.config.greet(ctx, conn, address)
	if err != nil {
		stop()
		conn.Close()
		return nil, err
	}
	return &meteredConn{
		Conn: secured, ctx: d.ctx, meter: d.meter, greeted: greeted, stop: stop,
		framing: &framing{own: d.config.InboxPrefix + ".", hold: d.hold},
	}, nil
}

// explain adds details that the library omits: why no server can be reached, or
// that one accepted the connection and sent nothing.
func (d *dialer) explain(err error) error {
	var network net.Error
	failed := d.failed.Load()
	switch {
	case failed != nil && errors.Is(err, nats.ErrNoServers):
		return *failed
	case failed == nil && (errors.As(err, &network) && network.Timeout() || errors.Is(err, context.DeadlineExceeded)):
		return fmt.Errorf("%w: %w", stream.ErrStalled, err)
	}
	return err
}
