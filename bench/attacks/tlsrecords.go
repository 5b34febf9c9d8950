package main

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/watchtide/watchtide/bench/internal/process"
)

var tlsRecords = attack{
	name:  "tls-records",
	title: "after its handshake, one address floods the gateway with updates of its keys, over HTTP/1.1 and HTTP/2, beside a stream of its own, begins long messages and records, and asks for another handshake",
	run:   runTLSRecords,
}

// updatesAtMost is how many updates of its keys a client of a stream may send, with those that are on their way when it is cut off.
// updatesAtMostH2 is how many one of HTTP/2 may send: as many at once as crypto/tls takes after each byte, and some in each second.
const (
	updatesAtMost   = 5_000
	updatesAtMostH2 = 20_000
)

func runTLSRecords(ctx context.Context, r *rig) error {
	t, end, err := beginTLS(ctx, r)
	if err != nil {
		return err
	}
	defer end()
	for _, over := range []string{"http/1.1", "h2"} {
		for _, answered := range []bool{true, false} {
			during := "updates of keys that are answered"
			if !answered {
				during = "updates of keys that are not answered"
			}
			if over == "h2" {
				during += ", over HTTP/2"
			}
			err := t.use(ctx, r, during, func(ctx context.Context) error { return t.updateKeys(ctx, r, during, over, answered) })
			if err != nil {
				return err
			}
		}
	}
	if err := t.beginMessages(ctx, r); err != nil {
		return err
	}
	return t.renegotiate(ctx, r)
}

const (
	unfinishedStreams = 300
	// unfinishedAtMost is how much memory a stream may cost whose client does not end what it has begun.
	unfinishedAtMost = 64 << 10
)

// beginMessages opens streams whose clients begin something long and do not end it: a third of them a record, a third of them
// a message of the handshake, and a third of them such a message right with the request.
func (t *tlsTarget) beginMessages(ctx context.Context, r *rig) error {
	before, err := process.Resident(t.PID())
	if err != nil {
		return err
	}
	message := append([]byte{11, 3, 0xff, 0xff}, make([]byte, 200<<10)...) // a certificate of 256 KiB
	var most int64
	for i := range unfinishedStreams {
		raw, w, err := t.open(ctx, "http/1.1", func(w *records) {
			for rest := message; i%3 == 0 && len(rest) > 0; {
				n := min(len(rest), 16<<10)
				w.add(rest[:n], handshakeRecord)
				rest = rest[n:]
			}
		})
		if err != nil && i%3 == 0 {
			continue // it was cut off
		}
		if err != nil {
			return err
		}
		defer raw.Close()
		switch i % 3 {
		case 1:
			_, _ = raw.Write([]byte{applicationRecord, 3, 3, 0x41, 0}) // of 16 KiB
		case 2:
			w.buffer = w.buffer[:0]
			for rest := message; len(rest) > 0; {
				n := min(len(rest), 16<<10)
				w.add(rest[:n], handshakeRecord)
				rest = rest[n:]
			}
			_, _ = w.to.Write(w.buffer) // it may be cut off
		}
	}
	began := time.Now()
	for time.Since(began) < 3*time.Second {
		now, err := process.Resident(t.PID())
		if err != nil {
			return err
		}
		most = max(most, now-before)
		if err := process.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	r.report("memory for each stream whose client begins a long message or record", fmt.Sprintf("≤ %d KiB", unfinishedAtMost>>10), most <= unfinishedAtMost*unfinishedStreams, "%d KiB", most/unfinishedStreams>>10)
	return nil
}

// updateKeys opens streams, and updates the keys of each as often as it can.
func (t *tlsTarget) updateKeys(ctx context.Context, r *rig, what, over string, answered bool) error {
	const streams = 4
	bound := int64(updatesAtMost)
	if over == "h2" {
		bound = updatesAtMostH2
	}
	before, err := t.CPU()
	if err != nil {
		return err
	}
	began := time.Now()
	flooding, stop := context.WithTimeout(ctx, 8*time.Second)
	defer stop()
	ends, _ := flooding.Deadline()
	var running sync.WaitGroup
	var most, all atomic.Int64
	failed := make(chan error, streams)
	for range streams {
		running.Go(func() {
			for flooding.Err() == nil {
				n, err := t.updateKeysOfOne(flooding, over, answered)
				if err != nil && time.Until(ends) > 100*time.Millisecond { // a dialer ends with its context, or just before
					failed <- err
					return
				}
				all.Add(n)
				most.Store(max(most.Load(), n))
			}
		})
	}
	running.Wait()
	close(failed)
	if err := <-failed; err != nil {
		return err
	}
	after, err := t.CPU()
	if err != nil {
		return err
	}
	r.report("the most "+what+" of one connection", fmt.Sprintf("≤ %d", bound), most.Load() > 0 && most.Load() <= bound, "%d, and %.0f per second in all, with %.2f processors",
		most.Load(), float64(all.Load())/time.Since(began).Seconds(), (after-before).Seconds()/time.Since(began).Seconds())
	return nil
}

// updateKeysOfOne opens a stream, and returns how many updates of its keys the gateway took.
func (t *tlsTarget) updateKeysOfOne(ctx context.Context, over string, answered bool) (updates int64, err error) {
	raw, w, err := t.open(ctx, over, func(*records) {})
	if err != nil {
		return 0, err
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	go func() { _, _ = io.Copy(io.Discard, raw) }() // ends with the connection
	data, each := []byte("x"), 1
	if over == "h2" {
		var ping bytes.Buffer
		if err := http2.NewFramer(&ping, nil).WritePing(true, [8]byte{}); err != nil {
			return 0, err
		}
		data, each = ping.Bytes(), 16
	}
	return w.flood(ctx, data, each, answered), nil
}

// open opens a stream over a connection of its own, and sends more with its request. It returns once something is answered.
func (t *tlsTarget) open(ctx context.Context, over string, more func(*records)) (_ net.Conn, w *records, err error) {
	raw, err := t.dial(ctx, "127.0.0.66")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			raw.Close()
		}
	}()
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	var keys bytes.Buffer
	c := t.trust.Clone()
	c.MinVersion, c.KeyLogWriter, c.NextProtos = tls.VersionTLS13, &keys, []string{over}
	secure := tls.Client(raw, c)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, nil, err
	}
	if suite := secure.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		return nil, nil, fmt.Errorf("the cipher suite is %s: want TLS_AES_128_GCM_SHA256", tls.CipherSuiteName(suite))
	}
	if w, err = newRecords(raw, keys.String(), 0); err != nil {
		return nil, nil, err
	}
	if request := "GET /v1/watches/notes/events HTTP/1.1\r\nHost: localhost\r\n\r\n"; over == "http/1.1" {
		w.add([]byte(request), applicationRecord)
	} else {
		w.add([]byte(http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"), applicationRecord) // and empty settings
	}
	more(w)
	if _, err = raw.Write(w.buffer); err != nil {
		return nil, nil, err
	}
	_, err = raw.Read(make([]byte, 1))
	return raw, w, err
}

// records writes records of TLS 1.3 after the handshake, with TLS_AES_128_GCM_SHA256.
type records struct {
	to     io.Writer
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	number uint64 // of the next record
	buffer []byte
}

// newRecords returns a writer for a client that has written some records already. keys is the log of its keys.
func newRecords(to io.Writer, keys string, written uint64) (*records, error) {
	for line := range strings.Lines(keys) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "CLIENT_TRAFFIC_SECRET_0" {
			secret, err := hex.DecodeString(fields[2])
			if err != nil {
				return nil, err
			}
			w := &records{to: to, number: written}
			return w, w.use(secret)
		}
	}
	return nil, errors.New("the log of keys has no CLIENT_TRAFFIC_SECRET_0")
}

// use makes the keys of a secret (RFC 8446, section 7.3).
func (w *records) use(secret []byte) (err error) {
	w.secret = secret
	key, err := expand(secret, "key", 16)
	if err != nil {
		return err
	}
	if w.iv, err = expand(secret, "iv", 12); err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	w.aead, err = cipher.NewGCM(block)
	return err
}

// expand is HKDF-Expand-Label without a context (RFC 8446, section 7.1).
func expand(secret []byte, label string, length int) ([]byte, error) {
	label = "tls13 " + label
	info := binary.BigEndian.AppendUint16(nil, uint16(length))
	info = append(append(info, byte(len(label))), label...)
	return hkdf.Expand(sha256.New, secret, string(append(info, 0)), length)
}

// Types of content.
const (
	handshakeRecord   = 22
	applicationRecord = 23
)

// add appends a record to the buffer.
func (w *records) add(content []byte, kind byte) {
	inner := append(bytes.Clone(content), kind)
	head := binary.BigEndian.AppendUint16([]byte{applicationRecord, 3, 3}, uint16(len(inner)+w.aead.Overhead()))
	nonce := bytes.Clone(w.iv)
	for i := range 8 {
		nonce[4+i] ^= byte(w.number >> (56 - 8*i))
	}
	w.number++
	w.buffer = w.aead.Seal(append(w.buffer, head...), nonce, inner, head)
}

// flood updates the keys again and again (RFC 8446, section 4.6.3), each time after some data, and returns how often until
// the connection failed. It leaves time on the processors to those who measure.
func (w *records) flood(ctx context.Context, data []byte, each int, answered bool) (updates int64) {
	const atOnce = 100
	update := []byte{24, 0, 0, 1, 0}
	if answered {
		update[4] = 1
	}
	for {
		w.buffer = w.buffer[:0]
		for range atOnce {
			if updates%int64(each) == 0 {
				at := int(updates/int64(each)) % len(data)
				w.add(data[at:at+1], applicationRecord)
			}
			updates++
			w.add(update, handshakeRecord)
			secret, err := expand(w.secret, "traffic upd", sha256.Size)
			if err != nil || w.use(secret) != nil {
				return updates
			}
			w.number = 0
		}
		if _, err := w.to.Write(w.buffer); err != nil {
			return updates
		}
		if process.Sleep(ctx, 5*time.Millisecond) != nil {
			return updates
		}
	}
}

// renegotiate asks for another handshake in TLS 1.2, with openssl, since crypto/tls cannot.
func (t *tlsTarget) renegotiate(ctx context.Context, r *rig) error {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		r.report("another handshake in TLS 1.2", "ends the connection", true, "not tried: there is no openssl")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, process.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, openssl, "s_client", "-connect", t.HTTP, "-tls1_2")
	in, err := command.StdinPipe()
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(t.HTTP)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.WriteString(in, "GET /v1/watches HTTP/1.1\nHost: "+host+"\n\n")
		if process.Sleep(ctx, time.Second) == nil {
			_, _ = io.WriteString(in, "R\n") // begins another one
		}
		<-ctx.Done() // with its input, openssl would end by itself
		in.Close()
	}()
	began := time.Now()
	output, err := command.CombinedOutput()
	took := time.Since(began)
	if !bytes.Contains(output, []byte("RENEGOTIATING")) {
		return fmt.Errorf("openssl did not ask for another handshake: %w\n%.500s", err, output)
	}
	r.report("another handshake in TLS 1.2", "ends the connection, within 5s", took <= 5*time.Second && bytes.Contains(output, []byte("alert")), "%v", took.Round(100*time.Millisecond))
	return nil
}
