package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

var tlsHandshakes = attack{
	name:  "tls-handshakes",
	title: "one address begins TLS handshakes and never ends them, trickles others byte by byte, trickles a request in records of one byte, and floods the gateway with whole handshakes",
	run:   runTLSHandshakes,
}

const (
	// connectWithin is how much longer somebody else may take to connect and to be answered than without the attack, in 95 of
	// 100 cases. A handshake alone takes a few milliseconds.
	connectWithin = 500 * time.Millisecond
	// lateAtMost is how much later the changes of a stream may be.
	lateAtMost = 400 * time.Millisecond
	// endsWithin is how long a connection may last that does not become one.
	endsWithin = 12 * time.Second
)

const handshakeConfiguration = `
http: { listen: "127.0.0.1:0", tls: { cert_file: DIR/server.pem, key_file: DIR/server.key } }
operations: { listen: "127.0.0.1:0" }
sources: { a: { type: store } }
watches: { notes: { source: a } }
`

// tlsTarget is a gateway with TLS, and somebody who uses it while it is attacked.
type tlsTarget struct {
	*target
	trust *tls.Config
	late  lateness
	user  *client

	connects, lates time.Duration // 95 % of them, without an attack
}

func startTLS(ctx context.Context, r *rig, configuration string) (*tlsTarget, error) {
	pki, err := newAuthority()
	if err != nil {
		return nil, err
	}
	t, err := r.start(ctx, configuration, pki.files)
	if err != nil {
		return nil, err
	}
	out := &tlsTarget{target: t, trust: &tls.Config{RootCAs: pki.pool, ServerName: "127.0.0.1"}}
	out.user = out.as("127.0.0.5")
	return out, nil
}

// as returns a client at an address.
func (t *tlsTarget) as(host string) *client {
	c := t.target.as("", host)
	c.base = "https://" + t.HTTP
	c.http.Transport.(*http.Transport).TLSClientConfig = t.trust.Clone()
	return c
}

// dial opens a connection without TLS from an address.
func (t *tlsTarget) dial(ctx context.Context, host string) (net.Conn, error) {
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}, Timeout: process.Patience}
	return d.DialContext(ctx, "tcp", t.HTTP)
}

// use connects again and again while f runs, writes, and follows a stream that is open already. It reports how long that takes; if
// during is empty, it remembers that.
func (t *tlsTarget) use(ctx context.Context, r *rig, during string, f func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	done := make(chan error, 1)
	running.Go(func() { done <- f(ctx) })
	t.late.take()
	var took []time.Duration
	failed := 0
	for {
		select {
		case err := <-done:
			slices.Sort(took)
			connects, lates := quantile(took, 0.95), quantile(t.late.take(), 0.95)
			if during == "" {
				t.connects, t.lates = connects, lates
				return err
			}
			most := (t.connects + connectWithin).Round(time.Millisecond)
			r.report("others connect and list during "+during, fmt.Sprintf("95 %% within %v, all do", most), failed == 0 && connects <= most, "%v, %d of %d fail",
				connects.Round(time.Millisecond), failed, len(took)+failed)
			r.atMost("95 % of the changes of an open stream during "+during+" are late by", lates, (t.lates + lateAtMost).Round(time.Millisecond))
			return err
		default:
		}
		stranger := t.as("127.0.0.6")
		a, err := stranger.get(ctx, "/v1/watches/notes/resources")
		stranger.http.CloseIdleConnections()
		if err != nil || a.status != http.StatusOK {
			failed++
		} else {
			took = append(took, a.took)
		}
		if err := t.user.put(ctx, "notes", "k", fmt.Sprintf(`{"t":%d}`, time.Now().UnixNano())); err != nil {
			return err
		}
		if err := process.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// alone measures what use does without an attack.
func (t *tlsTarget) alone(ctx context.Context, r *rig) error {
	return t.use(ctx, r, "", func(ctx context.Context) error { return process.Sleep(ctx, 4*time.Second) })
}

// beginTLS starts a gateway, follows a stream of it until end is called, and measures both without an attack.
func beginTLS(ctx context.Context, r *rig) (t *tlsTarget, end func(), err error) {
	if t, err = startTLS(ctx, r, handshakeConfiguration); err != nil {
		return nil, nil, err
	}
	following, stop := context.WithCancel(ctx)
	followed := t.late.follow(following, t.user, "/v1/watches/notes/events")
	end = func() { stop(); followed() }
	if err = t.alone(ctx, r); err != nil {
		end()
		return nil, nil, err
	}
	return t, end, nil
}

func runTLSHandshakes(ctx context.Context, r *rig) error {
	t, end, err := beginTLS(ctx, r)
	if err != nil {
		return err
	}
	defer end()
	for _, one := range []struct {
		during string
		attack func(context.Context, *rig) error
	}{
		{"half handshakes", t.halfHandshakes},
		{"trickled handshakes", t.trickledHandshakes},
		{"trickled records", t.trickledRecords},
		{"a flood of handshakes", t.flood},
	} {
		if err := t.use(ctx, r, one.during, func(ctx context.Context) error { return one.attack(ctx, r) }); err != nil {
			return err
		}
	}
	return nil
}

// lasting opens connections from one address, has each do something until it fails, and reports how long they last.
func (t *tlsTarget) lasting(ctx context.Context, r *rig, what string, connections int, do func(net.Conn)) error {
	var running sync.WaitGroup
	var longest atomic.Int64
	for range connections {
		c, err := t.dial(ctx, "127.0.0.66")
		if err != nil {
			return err
		}
		running.Go(func() {
			began := time.Now()
			defer c.Close()
			do(c)
			for took := int64(time.Since(began)); ; {
				was := longest.Load()
				if took <= was || longest.CompareAndSwap(was, took) {
					return
				}
			}
		})
	}
	running.Wait()
	r.atMost(fmt.Sprintf("the longest of %d %s", connections, what), time.Duration(longest.Load()), endsWithin)
	return nil
}

// halfHello is the beginning of a ClientHello.
var halfHello = []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")

// halfHandshakes begins handshakes, half of them with nothing, and never ends them.
func (t *tlsTarget) halfHandshakes(ctx context.Context, r *rig) error {
	var n atomic.Int64
	return t.lasting(ctx, r, "half handshakes", 2000, func(c net.Conn) {
		if n.Add(1)%2 == 0 {
			_, _ = c.Write(halfHello) // an error shows when it is read
		}
		_ = c.SetReadDeadline(time.Now().Add(3 * endsWithin))
		_, _ = io.Copy(io.Discard, c)
	})
}

// trickledHandshakes sends a byte of a long hello now and then.
func (t *tlsTarget) trickledHandshakes(ctx context.Context, r *rig) error {
	hello := append([]byte("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03"), make([]byte, 16<<10)...)
	return t.lasting(ctx, r, "trickled handshakes", 200, func(c net.Conn) {
		for _, b := range hello {
			if _, err := c.Write([]byte{b}); err != nil || process.Sleep(ctx, 100*time.Millisecond) != nil {
				return
			}
		}
	})
}

// trickledRecords sends the head of a request in records of one byte.
func (t *tlsTarget) trickledRecords(ctx context.Context, r *rig) error {
	head := "GET /v1/watches HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 10_000)
	return t.lasting(ctx, r, "requests in records of one byte", 100, func(c net.Conn) {
		secure := tls.Client(c, t.trust)
		if err := secure.HandshakeContext(ctx); err != nil {
			return
		}
		for i := range len(head) {
			if _, err := io.WriteString(secure, head[i:i+1]); err != nil || process.Sleep(ctx, 100*time.Millisecond) != nil {
				return
			}
		}
	})
}

// flood does whole handshakes, as fast as one address can.
func (t *tlsTarget) flood(ctx context.Context, r *rig) error {
	before, err := t.Metric(ctx, `watchtide_handshakes_total`)
	if err != nil {
		return err
	}
	began := time.Now()
	flooding, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	var running sync.WaitGroup
	for range 64 {
		running.Go(func() {
			for flooding.Err() == nil {
				c, err := t.dial(flooding, "127.0.0.66")
				if err != nil {
					continue
				}
				_ = tls.Client(c, t.trust).HandshakeContext(flooding) // how it ends is in the metrics
				c.Close()
			}
		})
	}
	running.Wait()
	after, err := t.Metric(ctx, `watchtide_handshakes_total`)
	if err != nil {
		return err
	}
	rate := (after - before) / time.Since(began).Seconds()
	r.report("handshakes of the flood", "≥ 100 per second, so that it is one", rate >= 100, "%.0f per second", rate)
	if ctx.Err() != nil {
		return errors.New("the flood was cut short")
	}
	return nil
}
