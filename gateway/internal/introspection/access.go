package introspection

import (
	"crypto/tls"
	"net"
	"net/http"
)

// SiblingAccess is how a replica shows that it may ask the others.
type SiblingAccess struct {
	// Token is sent as Authorization: Bearer, to all addresses; empty: none is sent. It is in no
	// error.
	Token string
	// TLS has the authorities that are trusted, and the certificate of this replica if it has one,
	// for the addresses that begin with https. nil: the authorities of the system. Without a
	// server name in it, certificates must be for the host in the address.
	TLS *tls.Config
}

// client returns the client for an address. It keeps no connections, and follows no redirects,
// which could send the token elsewhere.
func (a SiblingAccess) client(address string) *http.Client {
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: askTimeout}).DialContext, TLSClientConfig: a.tls(address),
		DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10,
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// tls returns the configuration for an address. The name that stands for many addresses is that
// in all their certificates.
func (a SiblingAccess) tls(address string) *tls.Config {
	if !IsSecure(address) {
		return nil
	}
	c := a.TLS.Clone()
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.ServerName == "" {
		c.ServerName = hostOf(address)
	}
	return c
}
