package h2

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
)

// Settings are the limits of connections.
type Settings struct {
	MaxStreams     int           // that a client may have open on one connection
	MaxHeaderBytes int           // of a request
	HelloTimeout   time.Duration // until the client has sent its preface and its settings
	IdleTimeout    time.Duration // without a stream
	PingAfter      time.Duration // without a complete frame of the client
	PingTimeout    time.Duration // for the answer
	// Outputs is what connections may hold that their clients have not taken, beyond outputFirst for each twice.
	Outputs *limits.Budget
	// MinRate is how many bytes a second a client must take of what is in Outputs; ≤ 0: none.
	MinRate int64
}

// server is the connections of HTTP/2 of an http.Server.
//
// All methods may be called from any goroutine.
type server struct {
	settings Settings // static after construction

	mu      sync.Mutex // guards the following fields
	conns   map[*conn]struct{}
	leaving bool // connections get a GOAWAY
}

// protocolUnencrypted is the name under which net/http, and golang.org/x/net/http2, know the protocol of
// a connection without TLS. The connection is beneath that of TLS which a function gets.
const protocolUnencrypted = "unencrypted_http2"

// Configure makes s serve HTTP/2, as far as s.Protocols has it, by this package. Shutdown of s sends a GOAWAY
// to each connection, and waits until its streams have ended.
func Configure(s *http.Server, c Settings) {
	own := &server{settings: c, conns: map[*conn]struct{}{}}
	s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(s *http.Server, c *tls.Conn, h http.Handler) {
			if c.ConnectionState().Version >= tls.VersionTLS12 { // RFC 9113, section 9.2
				own.serve(s, c, h, false)
			}
		},
		protocolUnencrypted: func(s *http.Server, c *tls.Conn, h http.Handler) {
			if beneath, ok := c.NetConn().(interface{ UnencryptedNetConn() net.Conn }); ok {
				own.serve(s, beneath.UnencryptedNetConn(), h, true)
			}
		},
	}
	s.RegisterOnShutdown(own.leave)
}

// serve serves a connection until it ends. net/http closes it afterwards. greeted says that net/http has
// read the preface.
func (s *server) serve(of *http.Server, c net.Conn, h http.Handler, greeted bool) {
	ctx := context.Background()
	if based, ok := h.(interface{ BaseContext() context.Context }); ok {
		ctx = based.BaseContext()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	one := newConn(s, of, c, h, ctx)
	leaving := s.enter(one)
	defer s.exit(one)
	one.serve(greeted, leaving)
}

func (s *server) enter(c *conn) (leaving bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	return s.leaving
}

func (s *server) exit(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// leave sends a GOAWAY to all connections, which end with their last stream.
func (s *server) leave() {
	s.mu.Lock()
	s.leaving = true
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.leave()
	}
}
