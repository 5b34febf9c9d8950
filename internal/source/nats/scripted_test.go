package nats

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// scripted is a server of one bucket, b, that sends what a test says: also what no
// server sends.
type scripted struct {
	t        testing.TB
	listener net.Listener
	messages []scriptedMessage // of the bucket, from sequence 1

	// Set before the first connection; nil: as a server does.
	greet   func(p *peer)                                       // sends INFO
	answer  func(p *peer, subject, reply string, _ []byte) bool // handles a request; false: as a server does
	deliver func(p *peer, inbox string)                         // sends the messages of a new consumer

	mu       sync.Mutex
	connects []string // the CONNECT lines
	peers    sync.WaitGroup
}

// scriptedMessage is a message of a bucket.
type scriptedMessage struct{ key, header, body string }

// peer is one connection of a client.
type peer struct {
	net.Conn
	of    *scripted
	write sync.Mutex
	sids  map[string]string // by subject
}

// newScripted returns a server on a free port. change may change it before the first connection.
func newScripted(t testing.TB, change func(*scripted)) *scripted {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{t: t, listener: listener, messages: []scriptedMessage{{key: "a", body: "1"}}}
	if change != nil {
		change(s)
	}
	s.peers.Go(s.accept)
	t.Cleanup(func() { listener.Close(); s.peers.Wait() })
	return s
}

func (s *scripted) addr() string { return s.listener.Addr().String() }

func (s *scripted) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		p := &peer{Conn: c, of: s, sids: map[string]string{}}
		s.peers.Go(func() {
			defer c.Close()
			stop := context.AfterFunc(s.t.Context(), func() { c.Close() })
			defer stop()
			p.serve()
		})
	}
}

// connected returns the CONNECT lines so far.
func (s *scripted) connected() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.connects...)
}

// info returns the line that opens a connection, with more members.
func (s *scripted) info(more string) string {
	return `INFO {"server_id":"x","version":"2.11.0","proto":1,"headers":true,"max_payload":1048576` + more + "}\r\n"
}

func (p *peer) send(text string) {
	p.write.Lock()
	defer p.write.Unlock()
	_, _ = io.WriteString(p.Conn, text) // a client that is gone is noticed by serve
}

// reply sends a message on a subject that the client has subscribed to; of is the
// subject that the message has.
func (p *peer) message(sid, of, reply, header, body string) {
	if header == "" {
		p.send(fmt.Sprintf("MSG %s %s %s %d\r\n%s\r\n", of, sid, reply, len(body), body))
		return
	}
	header = "NATS/1.0\r\n" + header + "\r\n\r\n"
	p.send(fmt.Sprintf("HMSG %s %s %s %d %d\r\n%s%s\r\n", of, sid, reply, len(header), len(header)+len(body), header, body))
}

// sid returns the number of the subscription that receives a subject.
func (p *peer) sid(subject string) string {
	if sid, ok := p.sids[subject]; ok {
		return sid
	}
	for pattern, sid := range p.sids {
		if strings.HasSuffix(pattern, ".*") && strings.HasPrefix(subject, strings.TrimSuffix(pattern, "*")) {
			return sid
		}
	}
	return "0"
}

// serve reads what the client sends, until it is gone.
func (p *peer) serve() {
	if p.of.greet != nil {
		p.of.greet(p)
	} else {
		p.send(p.of.info(""))
	}
	for in := bufio.NewReader(p.Conn); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case f[0] == "CONNECT":
			p.of.mu.Lock()
			p.of.connects = append(p.of.connects, line)
			p.of.mu.Unlock()
		case f[0] == "PING":
			p.send("PONG\r\n")
		case f[0] == "SUB":
			p.sids[f[1]] = f[len(f)-1]
		case f[0] == "PUB" || f[0] == "HPUB":
			size, _ := strconv.Atoi(f[len(f)-1])
			body := make([]byte, size+2)
			if _, err := io.ReadFull(in, body); err != nil {
				return
			}
			reply := ""
			if f[0] == "PUB" && len(f) == 4 || f[0] == "HPUB" && len(f) == 5 {
				reply = f[2]
			}
			if p.of.answer == nil || !p.of.answer(p, f[1], reply, body[:size]) {
				p.request(f[1], reply, body[:size])
			}
		}
	}
}

// request answers as a server does.
func (p *peer) request(subject, reply string, body []byte) {
	switch n := len(p.of.messages); {
	case strings.Contains(subject, ".STREAM.INFO."):
		p.message(p.sid(reply), reply, "", "", streamInfo(n))
	case strings.Contains(subject, ".STREAM.MSG.GET."):
		p.message(p.sid(reply), reply, "", "", fmt.Sprintf(`{"message":{"subject":"$KV.b.a","seq":%d,"time":"2026-01-01T00:00:01Z"}}`, n))
	case strings.Contains(subject, ".CONSUMER."):
		var asked struct {
			Config struct {
				DeliverSubject string `json:"deliver_subject"`
			} `json:"config"`
		}
		_ = json.Unmarshal(body, &asked)
		p.message(p.sid(reply), reply, "", "", `{"stream_name":"KV_b","name":"c","created":"2026-01-01T00:00:00Z","config":{}}`)
		if p.of.deliver != nil {
			p.of.deliver(p, asked.Config.DeliverSubject)
			return
		}
		p.deliverAll(asked.Config.DeliverSubject)
	}
}

// deliverAll sends the messages of the bucket.
func (p *peer) deliverAll(inbox string) {
	for i, m := range p.of.messages {
		p.message(p.sid(inbox), "$KV.b."+m.key, ackOf(i+1, len(p.of.messages)), m.header, m.body)
	}
}

// ackOf is the subject that identifies a message, of n.
func ackOf(i, n int) string { return fmt.Sprintf("$JS.ACK.KV_b.c.1.%d.%d.%d.%d", i, i, i, n-i) }

func streamInfo(n int) string {
	return fmt.Sprintf(`{"config":{"name":"KV_b","subjects":["$KV.b.>"],"max_msgs_per_subject":1},"created":"2026-01-01T00:00:00Z",
		"state":{"messages":%d,"first_seq":1,"last_seq":%d,"last_ts":"2026-01-01T00:00:01Z","num_subjects":%d}}`, n, n, n)
}

// watched is one Watch call against a scripted server.
type watched struct {
	*streamtest.SinkRecorder
	ended chan struct{}
	err   error // read after ended
}

// watch follows the bucket of a scripted server.
func (s *scripted) watch(options ...func(*Config)) *watched {
	s.t.Helper()
	c := Config{URL: "nats://" + s.addr(), Bucket: "b"}
	for _, o := range options {
		o(&c)
	}
	source, err := New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &watched{SinkRecorder: streamtest.NewSinkRecorder(stream.Resume{}, nil), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		w.err = source.Watch(ctx, stream.Resume{}, w.SinkRecorder)
	}()
	s.t.Cleanup(func() { cancel(); <-w.ended })
	return w
}

// wantError fails unless the call ends with this in its error.
func (w *watched) wantError(t *testing.T, want string) {
	t.Helper()
	select {
	case <-w.ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("Watch has not ended: want an error with %q", want)
	}
	if w.err == nil || !strings.Contains(w.err.Error(), want) {
		t.Errorf("error %v, want %q in it", w.err, want)
	}
}

// wantValue waits until a key has a value.
func (w *watched) wantValue(t *testing.T, key, value string) {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		changed := w.Changed()
		if v, ok := w.State()[key]; ok && v.Value == value {
			return
		}
		select {
		case <-changed:
		case <-w.ended:
			t.Fatalf("Watch has ended: %v", w.err)
		case <-timeout:
			t.Fatalf("the state is %v: want %s=%s", w.State(), key, value)
		}
	}
}
