package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/watchtide/watchtide/internal/source/adapter"
)

// errConnected is why no second network connection is made for a session.
var errConnected = errors.New("the session has its connection")

// connect makes a session, for replication or for queries.
func (c *Config) connect(ctx context.Context, replication bool) (*pgconn.PgConn, error) {
	config, err := c.parse()
	if err != nil {
		return nil, err
	}
	if replication {
		config.RuntimeParams["replication"] = "database"
	} else {
		// Not a parameter: a connection that is to be read-write would be refused for it.
		config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			return conn.Exec(ctx, "SET default_transaction_read_only = on").Close()
		}
	}
	dial := config.DialFunc
	if c.network != nil {
		dial = c.network
	}
	// To cancel a request, the library would connect again while it closes a session, and wait
	// for that: a server that does not answer would delay the end.
	var connected atomic.Bool
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() {
			return nil, errConnected
		}
		return dial(ctx, network, address)
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	connected.Store(true)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if pgconn.Timeout(err) {
			err = c.stalled()
		}
		return nil, err
	}
	conn.Frontend().SetMaxBodyLen(maxMessage)
	return conn, nil
}

// parse returns what the library needs to connect.
func (c *Config) parse() (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(c.URL)
	if err != nil {
		return nil, err
	}
	if c.PasswordFile != "" {
		if config.Password, err = adapter.ReadSecret(c.PasswordFile); err != nil {
			return nil, err
		}
	}
	if c.TLS != nil {
		config.TLSConfig = c.tlsFor(config.Host)
		for _, f := range config.Fallbacks {
			f.TLSConfig = c.tlsFor(f.Host)
		}
	}
	config.ConnectTimeout = c.StallAfter
	for name, value := range c.settings() {
		config.RuntimeParams[name] = value
	}
	return config, nil
}

// tlsFor returns the configuration of TLS for a host.
func (c *Config) tlsFor(host string) *tls.Config {
	config := c.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName = host
	}
	return config
}

// maxMessage bounds a message of the server, in bytes.
const maxMessage = 256 << 20

// closeConn ends a session, and returns when nothing of it is left.
func closeConn(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the server notices in either case
	_ = conn.Conn().Close()
	<-conn.CleanupDone()
}

// limit bounds one request.
func (c *Config) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.StallAfter, c.stalled())
}
