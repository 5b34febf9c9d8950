package h2

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest/keyupdate"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"golang.org/x/net/http2"
)

// serveTLS serves a connection with TLS, whose client is here, in a bubble of synctest. left returns what the client has left, and
// whether it was sent away.
func serveTLS(t *testing.T) (here net.Conn, left func() (float64, bool)) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	secure := tls.Server(&netconn.StallTimeoutConn{Conn: there, Timeout: time.Minute}, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	of := &server{settings: settings, conns: map[*conn]struct{}{}}
	served := make(chan struct{})
	go func() {
		defer close(served)
		defer there.Close()
		if secure.Handshake() == nil {
			of.serve(&http.Server{}, secure, http.NotFoundHandler(), false)
		}
	}()
	t.Cleanup(func() {
		here.Close()
		<-served
	})
	return here, func() (float64, bool) {
		synctest.Wait()
		of.mu.Lock()
		defer of.mu.Unlock()
		for c := range of.conns {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.flood.left, c.away
		}
		return 0, true
	}
}

// TestRecordsOfOneFrame: a small frame in a record of its own costs what it costs without TLS.
func TestRecordsOfOneFrame(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		synctest.Test(t, func(t *testing.T) {
			here, left := serveTLS(t)
			c := tls.Client(here, &tls.Config{InsecureSkipVerify: true, MaxVersion: version})
			if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
			f := http2.NewFramer(c, nil)
			if err := f.WriteSettings(); err != nil {
				t.Fatal(err)
			}
			before, _ := left()
			const frames = 1000
			for range frames {
				if err := f.WriteWindowUpdate(0, 1); err != nil {
					t.Fatal(err)
				}
			}
			if after, _ := left(); before-after != frames || before < floodBurst-100 {
				t.Errorf("%s: %d frames cost %v of %v", tls.VersionName(version), frames, before-after, before)
			}
		})
	}
}

// TestFloodsOfRecords: a client that sends much of TLS and little of HTTP/2 is sent away.
func TestFloodsOfRecords(t *testing.T) {
	var ping bytes.Buffer
	if err := http2.NewFramer(&ping, nil).WritePing(true, [8]byte{}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		send func(c *keyupdate.Client, next []byte) error // next is the next byte of frames
		most int
	}{
		"updates of keys":                   {func(c *keyupdate.Client, next []byte) error { return updates(c, next, false) }, floodBurst / 16},
		"updates of keys that are answered": {func(c *keyupdate.Client, next []byte) error { return updates(c, next, true) }, floodBurst / 16},
		"records of a byte":                 {func(c *keyupdate.Client, next []byte) error { c.Add(next); return c.Flush() }, floodBurst},
		"a message that does not end": {func(c *keyupdate.Client, _ []byte) error {
			c.AddHandshake(append([]byte{11, 3, 0xff, 0xff}, make([]byte, 1000)...))
			return c.Flush()
		}, readAtMost/1000 + 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			here, left := serveTLS(t)
			c, err := keyupdate.New(here, &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, here) }() // crypto/tls would not take so many answers
			if err := http2.NewFramer(c, nil).WriteSettings(); err != nil {
				t.Fatal(err)
			}
			n := 0
			for away := false; !away && n <= test.most; n++ {
				at := n % ping.Len()
				if test.send(c, ping.Bytes()[at:at+1]) != nil {
					break
				}
				_, away = left()
			}
			if n > test.most {
				t.Errorf("%s: the client sends %d, and goes on", name, n)
			}
		})
	}
}

// updates sends as many updates of keys as crypto/tls takes, after data.
func updates(c *keyupdate.Client, data []byte, answered bool) error {
	c.Add(data)
	for range 16 {
		if err := c.AddUpdate(answered); err != nil {
			return err
		}
	}
	return c.Flush()
}
