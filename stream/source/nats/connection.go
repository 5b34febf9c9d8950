package nats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/source/internal/secret"
)

// connection is one connection to one server, for one Watch call. The library
// does not reconnect when it is lost: that would hide the outage.
//
// Owned by the goroutine that runs Watch.
type connection struct {
	conn   *nats.Conn
	meter  *meter
	closed <-chan struct{} // closed after the library's last callback
	ended  <-chan struct{} // closed when the consumer has ended; nil: there is none
}

// connect tries the servers in random order. end is called with the reason when
// the connection is lost, or the server rejects something.
func (c *Config) connect(ctx context.Context, end context.CancelCauseFunc) (*connection, error) {
	who, err := c.login()
	if err != nil {
		return nil, c.failed(err)
	}
	dial := &dialer{ctx: ctx, dial: c.network, timeout: c.StallAfter, meter: new(meter)}
	closed := make(chan struct{})
	conn, err := nats.Connect(strings.Join(servers(c.URL), ","), append(who,
		nats.Name("watchtide"), nats.NoReconnect(), nats.SkipHostLookup(), nats.SetCustomDialer(dial),
		nats.Timeout(c.StallAfter), nats.FlusherTimeout(c.StallAfter),
		nats.PingInterval(-1), // the heartbeats suffice, and an answer may have to wait behind large values
		nats.CustomInboxPrefix(c.InboxPrefix),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if !errors.Is(err, nats.ErrBadHeaderMsg) { // a writer can write any header; the message arrives without it
				end(c.failed(err))
			}
		}),
		nats.ClosedHandler(func(conn *nats.Conn) {
			end(c.failed(lost(conn.LastError())))
			close(closed)
		}),
	)...)
	switch {
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = c.failed(dial.explain(err))
	}
	if err != nil && conn != nil {
		conn.Close()
		<-closed
	}
	return &connection{conn: conn, meter: dial.meter, closed: closed}, err
}

// lost describes how a connection ended.
func lost(err error) error {
	if err == nil || errors.Is(err, nats.ErrBadHeaderMsg) {
		return errors.New("the server closed the connection")
	}
	return fmt.Errorf("the connection is lost: %w", err)
}

// login returns the configured way to authenticate.
func (c *Config) login() ([]nats.Option, error) {
	options := []nats.Option{}
	if c.TLS != nil {
		options = append(options, nats.Secure(c.TLS.Clone()))
	}
	switch {
	case c.CredentialsFile != "":
		return append(options, nats.UserCredentials(c.CredentialsFile)), readable(c.CredentialsFile)
	case c.NKeyFile != "":
		if err := readable(c.NKeyFile); err != nil {
			return nil, err
		}
		nkey, err := nats.NkeyOptionFromSeed(c.NKeyFile)
		return append(options, nkey), err
	case c.TokenFile != "":
		token, err := secret.Read(c.TokenFile)
		return append(options, nats.Token(token)), err
	case c.User != "":
		password, err := secret.Read(c.PasswordFile)
		return append(options, nats.UserInfo(c.User, password)), err
	}
	return options, nil
}

func readable(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return f.Close()
}

// close ends the connection, whose context has ended, and waits for the library.
func (c *connection) close() {
	c.conn.Close()
	<-c.closed
	if c.ended != nil {
		<-c.ended
	}
}

// dialer makes connections that end with a context, which the library does not
// support. It is called by one goroutine, that of Connect.
type dialer struct {
	// Static after construction.
	ctx     context.Context
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	timeout time.Duration
	meter   *meter

	// Atomic.
	failed atomic.Pointer[error] // the last that could not be made
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, d.timeout)
	defer cancel()
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		d.failed.Store(&err)
		return nil, err
	}
	// A pending write of the library must not delay the end either.
	stop := context.AfterFunc(d.ctx, func() { _ = conn.Close() })
	return &meteredConn{conn, d.meter, stop}, nil
}

// explain adds details that the library omits: why no server can be reached, or
// that one accepted the connection and sent nothing.
func (d *dialer) explain(err error) error {
	var network net.Error
	failed := d.failed.Load()
	switch {
	case failed != nil && errors.Is(err, nats.ErrNoServers):
		return *failed
	case failed == nil && errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("%w: %w", stream.ErrStalled, err)
	}
	return err
}
