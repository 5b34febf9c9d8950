package commands

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync/atomic"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/headers"
)

// listenerTLS is the TLS configuration of a listener. Each connection begins with the one
// that is current. nil: plain text.
//
// All its methods may be called from any goroutine.
type listenerTLS struct {
	protocols []string // static after construction
	now       atomic.Pointer[tls.Config]
}

// newListenerTLS returns nil if c is nil.
func newListenerTLS(c *tls.Config, protocols ...string) *listenerTLS {
	if c == nil {
		return nil
	}
	l := &listenerTLS{protocols: protocols}
	l.set(c)
	return l
}

// set makes new connections use c. If c is nil, nothing changes: turning TLS on or off takes a
// restart.
func (l *listenerTLS) set(c *tls.Config) {
	if l == nil || c == nil {
		return
	}
	c = c.Clone()
	c.NextProtos = l.protocols
	c.DynamicRecordSizingDisabled = true // an event is one record; what the gateway sets itself is on another configuration
	l.now.Store(c)
}

// config returns the TLS configuration with which the listener is opened.
func (l *listenerTLS) config() *tls.Config {
	if l == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: l.protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return l.now.Load(), nil },
	}
}

// secured are the listeners that may have TLS.
type secured struct{ http, grpc, operations *listenerTLS }

func newSecured(c *config.Config) secured {
	return secured{
		http:       newListenerTLS(c.HTTP.TLS, "h2", "http/1.1"),
		grpc:       newListenerTLS(c.GRPC.TLS, "h2"),
		operations: newListenerTLS(c.Operations.TLS, "h2", "http/1.1"),
	}
}

func (s secured) set(c *config.Config) {
	s.http.set(c.HTTP.TLS)
	s.grpc.set(c.GRPC.TLS)
	s.operations.set(c.Operations.TLS)
}

// hostsOf returns the names under which the gateway may be addressed: the
// configured ones, and those in the certificates of its listeners, which cannot
// be foreign names.
func hostsOf(c *config.Config) []string {
	hosts := slices.Clone(c.HTTP.Hosts)
	for _, certificate := range certificatesOf(c) {
		for _, name := range certificate.DNSNames {
			known := slices.Contains(hosts, name) || headers.IsLoopback(name+":0")
			if !known && headers.CheckHost(name) == nil {
				hosts = append(hosts, name)
			}
		}
	}
	return hosts
}

// certificatesOf returns the certificates of the listeners that have TLS, by listener; nil: none
// has.
func certificatesOf(c *config.Config) (out map[string]*x509.Certificate) {
	for name, secure := range map[string]*tls.Config{"http": c.HTTP.TLS, "grpc": c.GRPC.TLS, "operations": c.Operations.TLS} {
		if secure == nil {
			continue
		}
		if out == nil {
			out = map[string]*x509.Certificate{}
		}
		out[name] = secure.Certificates[0].Leaf
	}
	return out
}
