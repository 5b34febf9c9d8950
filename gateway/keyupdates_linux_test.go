package gateway

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest/keyupdate"
)

// updatingStream opens a stream whose client can update its keys, and reads up to the end of its snapshot.
func updatingStream(t *testing.T, address string, roots *x509.CertPool) (*handStream, *keyupdate.Client) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	client, err := keyupdate.New(c, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	s := &handStream{Conn: client, tcp: c.(*net.TCPConn), r: bufio.NewReader(client)}
	if _, err := io.WriteString(client, rawGet("/v1/events?watch=a")); err != nil {
		t.Fatal(err)
	}
	if err := s.until("end_of_snapshot"); err != nil {
		t.Fatal(err)
	}
	return s, client
}

// onTakenTLS runs a test over TLS, with both pumps.
func onTakenTLS(t *testing.T, c Config, test func(*testing.T, *realGateway, *x509.CertPool)) {
	secure, roots := certificate(t)
	for _, pump := range []Pump{PumpShards, PumpGoroutines} {
		c.Pump = pump
		t.Run(string(pump), func(t *testing.T) { test(t, newRealGateway(t, c, secure), roots) })
	}
}

// TestUpdatesOfKeys: a client updates its keys while it follows, asks the gateway for the same, and ends its side.
func TestUpdatesOfKeys(t *testing.T) {
	onTakenTLS(t, Config{}, func(t *testing.T, r *realGateway, roots *x509.CertPool) {
		s, client := updatingStream(t, r.address, roots)
		revision := uint64(1)
		news := func() {
			t.Helper()
			revision++
			text := fmt.Sprintf(`"news %d"`, revision)
			r.write("k", revision, text)
			if err := s.until(text); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 10 {
			if err := client.Update(i%2 == 0); err != nil {
				t.Fatal(err)
			}
			news()
		}
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if err := s.until(": heartbeat"); err != nil { // answers the end, and comes after the answers to the updates
			t.Fatal(err)
		}
		if n := client.Answers(); n != 5 {
			t.Errorf("%d updates of keys were answered, want 5", n)
		}
		news()
		r.registry.Remove("a")
		if rest, err := io.ReadAll(s.r); err != nil || !strings.Contains(string(rest), "watch_removed") {
			t.Errorf("%q, %v", rest, err)
		}
	})
}

// TestAttackUpdatesOfKeys: a client that updates its keys without an end loses its stream, whether the gateway has to answer
// or not; another one follows.
func TestAttackUpdatesOfKeys(t *testing.T) {
	onTakenTLS(t, Config{}, func(t *testing.T, r *realGateway, roots *x509.CertPool) {
		other := dialStream(t, r.address, roots, "")
		for _, requested := range []bool{true, false} {
			s, client := updatingStream(t, r.address, roots)
			go func() { _, _ = io.Copy(io.Discard, s.tcp) }() // ends with the connection
			sent, most := 0, 100_000
			for sent < most {
				for range 100 {
					client.Add([]byte("x")) // crypto/tls takes 16 updates without data
					if err := client.AddUpdate(requested); err != nil {
						t.Fatal(err)
					}
				}
				if client.Flush() != nil {
					break
				}
				sent += 100
			}
			if sent == most {
				t.Errorf("a client updates its keys %d times (answered: %t), and goes on", sent, requested)
			}
			s.Close()
			r.waitFor(t, 1)
		}
		r.write("k", 2, `"news"`)
		if err := other.until(`"news"`); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAttackUnfinishedMessages: a client that sends a long message of TLS, after its request or right with it, loses its stream before
// all of that is kept. One that sends another request, which nobody answers, does not.
func TestAttackUnfinishedMessages(t *testing.T) {
	onTakenTLS(t, Config{}, func(t *testing.T, r *realGateway, roots *x509.CertPool) {
		other, client := updatingStream(t, r.address, roots)
		if _, err := io.WriteString(client, "\r\n"+rawGet("/v1/watches/"+strings.Repeat("a", 900))); err != nil {
			t.Fatal(err)
		}
		addLong := func(c *keyupdate.Client) {
			message := append([]byte{11, 3, 0xff, 0xff}, make([]byte, 200<<10)...) // a certificate of 256 KiB
			for len(message) > 0 {
				n := min(len(message), 16<<10)
				c.AddHandshake(message[:n])
				message = message[n:]
			}
		}
		_, after := updatingStream(t, r.address, roots)
		addLong(after)
		c, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		with, err := keyupdate.New(c, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		with.Add([]byte(rawGet("/v1/events?watch=a")))
		addLong(with)
		for _, one := range []*keyupdate.Client{after, with} {
			_ = one.Flush() // it may be cut off
			if err := one.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, one); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a client that does not end a message goes on")
			}
		}
		r.waitFor(t, 1)
		r.write("k", 2, `"news"`)
		if err := other.until(`"news"`); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTicketsOfSessions: a client that comes back with the ticket of its last connection goes on with that session, and follows as
// before.
func TestTicketsOfSessions(t *testing.T) {
	onTakenTLS(t, Config{}, func(t *testing.T, r *realGateway, roots *x509.CertPool) {
		config := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", ClientSessionCache: tls.NewLRUClientSessionCache(1)}
		for i := range 4 {
			c, err := tls.Dial("tcp", r.address, config)
			if err != nil {
				t.Fatal(err)
			}
			s := &handStream{Conn: c, r: bufio.NewReader(c)}
			if _, err := io.WriteString(c, rawGet("/v1/events?watch=a")); err != nil {
				t.Fatal(err)
			}
			if err := s.until("end_of_snapshot"); err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf(`"news %d"`, i)
			r.write("k", uint64(i+2), text)
			if err := s.until(text); err != nil {
				t.Fatal(err)
			}
			if resumed := c.ConnectionState().DidResume; resumed != (i > 0) {
				t.Errorf("connection %d goes on with the session of the last one: %t", i, resumed)
			}
			c.Close()
			r.waitFor(t, 0)
		}
	})
}
