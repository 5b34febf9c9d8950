package epoll

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest/keyupdate"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
)

// rig is a connection with TLS that a poller carries, and its client.
type rig struct {
	t       *testing.T
	sockets Sockets
	p       Poller
	h       Handle
	client  *tls.Conn
	tcp     *net.TCPConn  // of the client
	full    chan struct{} // closed when a write was blocked for the first time
	blocked func()        // called when a write is blocked; nil: nothing is
}

const rigKey = 7

func newRig(t *testing.T, version uint16) *rig {
	t.Helper()
	return newRigOf(t, version, func(c net.Conn, config *tls.Config) (*tls.Conn, error) {
		client := tls.Client(c, config)
		return client, client.Handshake()
	})
}

// newUpdatingRig returns one whose client can update its keys.
func newUpdatingRig(t *testing.T) (r *rig, client *keyupdate.Client) {
	t.Helper()
	r = newRigOf(t, tls.VersionTLS13, func(c net.Conn, config *tls.Config) (_ *tls.Conn, err error) {
		if client, err = keyupdate.New(c, config); err != nil {
			return nil, err
		}
		return client.Conn, nil
	})
	return r, client
}

func newRigOf(t *testing.T, version uint16, handshake func(net.Conn, *tls.Config) (*tls.Conn, error)) *rig {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MaxVersion: version}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	connections := netconn.NewConnections(10, slog.New(slog.DiscardHandler))
	listener := netconn.Listen(tcp, time.Minute, slog.New(slog.DiscardHandler)).Counted(connections, false)
	far, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, sockets: SystemSockets(nil), tcp: far.(*net.TCPConn), full: make(chan struct{})}
	server := tls.Server(near, config)
	done := make(chan error, 1)
	go func() {
		var err error
		r.client, err = handshake(far, &tls.Config{InsecureSkipVerify: true, MaxVersion: version})
		done <- err
	}()
	if err := errors.Join(server.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	connections.State(server, http.StateActive)
	if r.h, err = r.sockets.Take(server); err != nil {
		t.Fatal(err)
	}
	near.Close()
	if r.p, err = r.sockets.NewPoller(); err != nil {
		t.Fatal(err)
	}
	if err := r.p.Watch(r.h, rigKey); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.sockets.Close(r.h)
		r.p.Shut()
		r.client.NetConn().Close()
	})
	return r
}

// await waits for an event of the connection.
func (r *rig) await(is func(Notice) bool) Notice {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		notices, err := r.p.Wait(nil, time.Until(deadline))
		if err != nil {
			r.t.Fatal(err)
		}
		for _, n := range notices {
			if n.Key == rigKey && is(n) {
				return n
			}
		}
		if time.Now().After(deadline) {
			r.t.Fatal("no event within 20 s")
		}
	}
}

// block waits until the connection takes bytes again. The client reads nothing before a write was
// blocked.
func (r *rig) block() {
	r.t.Helper()
	select {
	case <-r.full:
	default:
		close(r.full)
	}
	if r.blocked != nil {
		r.blocked()
	}
	if err := r.p.Await(r.h, rigKey, true); err != nil {
		r.t.Fatal(err)
	}
	r.await(func(n Notice) bool { return n.Writable })
}

// write writes as a shard does: what is not taken is written again when the connection takes bytes,
// perhaps cut in another way, with more after it.
func (r *rig) write(all []byte) {
	r.t.Helper()
	for visible := 0; len(all) > 0; {
		visible = min(len(all), max(visible, 1+mathrand.IntN(100_000)))
		n, err := r.p.WriteAll(r.h, cut(all[:visible]), false)
		if mathrand.IntN(3) == 0 && err == nil && n < len(all) {
			var more int
			more, err = r.p.Write(r.h, all[n:min(len(all), n+1+mathrand.IntN(1000))])
			n += more
		}
		all, visible = all[n:], max(0, visible-n)
		if errors.Is(err, ErrBlocked) {
			r.block()
		} else if err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestSecuredSendsFiles: what follows slices may be in a file.
func TestSecuredSendsFiles(t *testing.T) {
	r := newRig(t, tls.VersionTLS13)
	if err := r.tcp.SetReadBuffer(32 << 10); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(mathrand.Uint32())
	}
	file, err := NewFile([][]byte{want[1000 : len(want)-1000]}, nil)
	if errors.Is(err, errHugeFiles) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Release()
	got := make(chan []byte, 1)
	go func() {
		<-r.full
		all := make([]byte, len(want))
		if _, err := io.ReadFull(r.client, all); err != nil {
			t.Error(err)
		}
		got <- all
	}()
	r.write(want[:1000])
	for at := 0; at < file.Size(); {
		n, err := r.p.Send(r.h, file, at)
		if at += n; errors.Is(err, ErrBlocked) {
			r.block()
		} else if err != nil {
			t.Fatal(err)
		}
	}
	r.write(want[len(want)-1000:])
	if all := <-got; !bytes.Equal(all, want) {
		t.Error("the client got other bytes than were written")
	}
}

// cut returns bytes as several slices, of which some may be empty.
func cut(b []byte) (out [][]byte) {
	for len(b) > 0 {
		n := mathrand.IntN(min(len(b), 20_000) + 1)
		out, b = append(out, b[:n:n]), b[n:]
	}
	return out
}

var versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

// TestSecuredWritesEverythingOnce: whatever a slow client takes at a time, it gets the bytes in order,
// and then the end.
func TestSecuredWritesEverythingOnce(t *testing.T) {
	for _, version := range versions {
		r := newRig(t, version)
		if err := r.tcp.SetReadBuffer(32 << 10); err != nil {
			t.Fatal(err)
		}
		want := make([]byte, 1<<20)
		for i := range want {
			want[i] = byte(mathrand.Uint32())
		}
		got := make(chan []byte, 1)
		go func() {
			<-r.full
			all, err := io.ReadAll(r.client)
			if err != nil {
				t.Errorf("%s: %v, want the end that TLS has", tls.VersionName(version), err)
			}
			got <- all
		}()
		r.write(want)
		if err := r.p.Finish(r.h, rigKey); err != nil {
			t.Fatal(err)
		}
		if all := <-got; !bytes.Equal(all, want) {
			t.Errorf("%s: the client got %d bytes, which are not the %d that were written", tls.VersionName(version), len(all), len(want))
		}
	}
}

// TestSecuredReportsProgress: a client that takes a little of a record moves.
func TestSecuredReportsProgress(t *testing.T) {
	r := newRig(t, tls.VersionTLS13)
	all, taken := make([]byte, 16<<20), 0
	n, err := r.p.Write(r.h, all)
	for ; err == nil; n, err = r.p.Write(r.h, all) {
	}
	if taken = n; !errors.Is(err, ErrBlocked) {
		t.Fatal(err)
	}
	c := r.sockets.(tcpSockets).secured.get(r.h)
	if len(c.rest) == 0 || len(c.rest) > recordBytes+1024 || c.ahead == 0 {
		t.Fatalf("%d bytes are kept of a record of %d, for %d bytes that are to be written again", len(c.rest), recordBytes, c.ahead)
	}
	rest := len(c.rest)
	for len(c.rest) == rest {
		if _, err := r.client.NetConn().Read(make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
		if n, err = r.p.Write(r.h, all[taken:]); err != nil && !errors.Is(err, ErrBlocked) {
			t.Fatal(err)
		}
	}
	if n == 0 {
		t.Error("bytes were sent, and none is reported")
	}
}

// TestSecuredHears: what a client sends is dropped, up to a limit; and TLS 1.2 ends both sides, TLS
// 1.3 one.
func TestSecuredHears(t *testing.T) {
	for _, version := range versions {
		r := newRig(t, version)
		hear := func() bool {
			r.t.Helper()
			r.await(func(n Notice) bool { return n.Readable })
			return r.p.Discard(r.h)
		}
		if _, err := r.client.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if !hear() {
			t.Errorf("%s: a client that sends something has ended", tls.VersionName(version))
		}
		if err := r.client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, want := hear(), version == tls.VersionTLS13; got != want {
			t.Errorf("%s: after the end of its side a client may read: %v, want %v", tls.VersionName(version), got, want)
		}
		if version == tls.VersionTLS13 {
			r.await(func(n Notice) bool { return n.Ended })
		}
		r = newRig(t, version)
		go func() { _, _ = r.client.Write(make([]byte, 2*HeardAtMost)) }() // it is cut off
		turns := 1
		for ; hear(); turns++ {
		}
		if turns < 3 || turns > HeardAtMost/heardAtOnce+20 {
			t.Errorf("%s: a client that sends without an end was cut off after %d turns", tls.VersionName(version), turns)
		}
	}
}

// TestSecuredSmallRecords: what a client sends counts as it is on the network, so that records with next to nothing in them
// end the connection as soon.
func TestSecuredSmallRecords(t *testing.T) {
	for _, version := range versions {
		r := newRig(t, version)
		sent := make(chan int)
		go func() {
			n := 0
			for ; n < HeardAtMost; n++ {
				if _, err := r.client.Write([]byte{0}); err != nil {
					break
				}
			}
			sent <- n
		}()
		turns := 0
		for open := true; open; turns++ {
			r.await(func(n Notice) bool { return n.Readable })
			open = r.p.Discard(r.h)
		}
		r.client.NetConn().Close()
		if n := <-sent; n == HeardAtMost || turns < HeardAtMost/heardAtOnce {
			t.Errorf("%s: the gateway has read %d records in %d turns", tls.VersionName(version), n, turns)
		}
	}
}

// TestSecuredUpdatesOfKeys: a client may update its keys at any time, also while a record waits for it to be read, and ask the
// gateway for the same: what it is sent stays what was written, and so does the end of each side.
func TestSecuredUpdatesOfKeys(t *testing.T) {
	r, client := newUpdatingRig(t)
	if err := r.tcp.SetReadBuffer(32 << 10); err != nil {
		t.Fatal(err)
	}
	updates, asked, waiting := 0, 0, 0
	update := func() {
		r.t.Helper()
		requested := updates%4 != 3
		err := client.AddUpdate(requested)
		if updates++; requested {
			asked++
		}
		if updates%2 == 0 {
			client.Add([]byte("x"))
		}
		if err := errors.Join(err, client.Flush()); err != nil {
			t.Fatal(err)
		}
		r.await(func(n Notice) bool { return n.Readable })
		if !r.p.Discard(r.h) {
			t.Fatal("a client that updates its keys has ended")
		}
	}
	const parts, size = 20, 100_000
	want := make([]byte, parts*size)
	for i := range want {
		want[i] = byte(mathrand.Uint32())
	}
	got := make(chan []byte, 1)
	go func() {
		<-r.full
		all, err := io.ReadAll(r.client)
		if err != nil {
			t.Error(err)
		}
		got <- all
	}()
	r.blocked = func() {
		if waiting++; waiting <= 10 {
			update()
		}
	}
	for i := range parts {
		update()
		r.write(want[i*size : (i+1)*size])
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	r.await(func(n Notice) bool { return n.Readable })
	if !r.p.Discard(r.h) {
		t.Fatal("a client that ends its side may not read")
	}
	r.await(func(n Notice) bool { return n.Ended })
	if err := r.p.Finish(r.h, rigKey); err != nil {
		t.Fatal(err)
	}
	if all := <-got; !bytes.Equal(all, want) {
		t.Errorf("the client got %d bytes, which are not the %d that were written", len(all), len(want))
	}
	if n := client.Answers(); n != asked || waiting == 0 {
		t.Errorf("%d updates of keys were answered, want %d, and %d times the client had to read first", n, asked, waiting)
	}
}

// TestSecuredFloodOfUpdates: updates of keys end the connection at some point, also with data between: sooner if the gateway
// has to answer them, also if the client does not read the answers.
func TestSecuredFloodOfUpdates(t *testing.T) {
	for _, flood := range []struct {
		what                   string
		data, requested, reads bool
		atLeast, atMost        int
	}{
		{what: "without data", requested: true, reads: true, atLeast: 1, atMost: 16},
		{what: "with data between, answered", data: true, requested: true, reads: true, atLeast: 40, atMost: 80},
		{what: "with data between, answers not read", data: true, requested: true, atLeast: 40, atMost: 80},
		{what: "with data between, not answered", data: true, reads: true, atLeast: 100, atMost: 200},
	} {
		r, client := newUpdatingRig(t)
		if flood.reads {
			go func() { _, _ = io.Copy(io.Discard, r.tcp) }() // ends with the connection; crypto/tls would not take so many answers
		}
		heard, open := 0, true
		for open && heard <= 2*flood.atMost {
			if flood.data {
				client.Add([]byte("x"))
			}
			if err := errors.Join(client.AddUpdate(flood.requested), client.Flush()); err != nil {
				t.Fatal(err)
			}
			r.await(func(n Notice) bool { return n.Readable })
			if open = r.p.Discard(r.h); open {
				heard++
			}
		}
		if open || heard < flood.atLeast || heard > flood.atMost {
			t.Errorf("updates of keys %s: %d were heard, and the connection is open: %t", flood.what, heard, open)
		}
	}
}

// TestSecuredLongMessage: a message of TLS that does not end ends the connection before much of it is kept.
func TestSecuredLongMessage(t *testing.T) {
	r, client := newUpdatingRig(t)
	heard, open := 0, true
	client.AddHandshake([]byte{11, 3, 0xff, 0xff}) // a certificate of 256 KiB
	for ; open && heard < 2*HeardAtMost; heard += 1000 {
		client.AddHandshake(make([]byte, 1000))
		if err := client.Flush(); err != nil {
			t.Fatal(err)
		}
		r.await(func(n Notice) bool { return n.Readable })
		open = r.p.Discard(r.h)
	}
	if open || heard < HeardAtMost/2 || heard > HeardAtMost+2000 {
		t.Errorf("%d bytes of a message are heard, and the connection is open: %t", heard, open)
	}
}

// TestSecuredNonsense: bytes that are no TLS end the connection.
func TestSecuredNonsense(t *testing.T) {
	r := newRig(t, tls.VersionTLS13)
	if _, err := r.tcp.Write([]byte("this is no record of TLS, which has a type and a length")); err != nil {
		t.Fatal(err)
	}
	r.await(func(n Notice) bool { return n.Readable })
	if r.p.Discard(r.h) {
		t.Error("a client that sends nonsense may go on")
	}
}
