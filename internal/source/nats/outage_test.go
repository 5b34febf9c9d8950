//go:build servers

package nats

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// fails runs one Watch call from nothing and returns its error.
func fails(t *testing.T, s *Source) error {
	t.Helper()
	r := start(t, s, nil)
	select {
	case <-r.ended:
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
	return r.err
}

// gone waits for the end of a run, and requires that it ended soon.
func (r *run) gone(want error, soon time.Duration) {
	r.t.Helper()
	began := time.Now()
	select {
	case <-r.ended:
	case <-time.After(soon):
		r.t.Fatalf("not noticed within %v", soon)
	}
	if !errors.Is(r.err, want) {
		r.t.Errorf("ended with %v, want %v", r.err, want)
	}
	r.t.Logf("noticed after %v: %v", time.Since(began), r.err)
}

func TestStalledServerIsNoticed(t *testing.T) {
	t.Parallel() // it waits most of the time
	s := ownServer(t)
	b := newClient(t, s.Addr()).bucket(jetstream.KeyValueConfig{})
	b.must(b.put("a", "1"))
	r := start(t, source(t, s.Addr(), b.config.Bucket), nil).has("a", "1")
	s.Pause()
	defer s.Resume()
	r.gone(stream.ErrStalled, 4*time.Second)
}

func TestStalledConnectionIsNoticed(t *testing.T) {
	t.Parallel() // it waits most of the time
	b, _ := shared(t, jetstream.KeyValueConfig{})
	proxy := realserver.NewProxy(t, server(t).Addr())
	src := source(t, proxy.Addr(), b.config.Bucket)
	r := start(t, src, nil).has()
	proxy.Stall()
	r.gone(stream.ErrStalled, 4*time.Second)
	// A server that accepts the connection, and sends nothing, does not delay the end
	// either.
	began := time.Now()
	if err := fails(t, src); !errors.Is(err, stream.ErrStalled) || time.Since(began) > 10*time.Second {
		t.Errorf("gave up after %v: %v", time.Since(began), err)
	}
	proxy.Heal()
	b.must(b.put("a", "1"))
	start(t, src, r).has("a", "1")
}

// The consumer is gone, while the server and the connection are fine.
func TestDeletedConsumerIsNoticed(t *testing.T) {
	t.Parallel() // it waits most of the time
	b, s := shared(t, jetstream.KeyValueConfig{})
	b.must(b.put("a", "1"))
	r := start(t, s, nil).has("a", "1")
	str, err := b.js.Stream(within(t), "KV_"+b.config.Bucket)
	b.must(err)
	names := str.ConsumerNames(within(t))
	for name := range names.Name() {
		b.must(str.DeleteConsumer(within(t), name))
	}
	<-r.ended
	b.must(b.put("b", "2"))
	start(t, s, r).has("a", "1", "b", "2").resets(0)
}

func TestDeletedBucketIsNoticed(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{})
	b.must(b.put("a", "1"))
	r := start(t, s, nil).has("a", "1")
	b.must(b.js.DeleteKeyValue(within(t), b.config.Bucket))
	select {
	case <-r.ended:
	case <-time.After(4 * time.Second):
		t.Fatal("not noticed")
	}
	err := fails(t, s)
	if !errors.Is(err, jetstream.ErrStreamNotFound) || !strings.Contains(err.Error(), "want the name of a bucket that exists") {
		t.Errorf("error %v", err)
	}
	b.KeyValue = b.client.bucket(b.config).KeyValue
	b.must(b.put("b", "2"))
	again := start(t, s, r).has("b", "2").resets(1)
	if a, b := r.Resume().Epoch, again.Resume().Epoch; a == b {
		t.Errorf("the epoch is still %s", a)
	}
}

// A bucket that is deleted and immediately recreated, and has outgrown the old
// one before the gateway checks.
func TestBucketRecreatedWhileAway(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{})
	b.must(b.put("a", "1"))
	r := start(t, s, nil).has("a", "1").stop()
	b.again()
	for range 5 {
		b.must(b.put("b", "2"))
	}
	again := start(t, s, r).has("b", "2").resets(1)
	if a, b := r.Resume().Epoch, again.Resume().Epoch; a == b {
		t.Errorf("the epoch is still %s", a)
	}
}

// Several servers: those that are down, or silent, are skipped.
func TestFailOver(t *testing.T) {
	b, _ := shared(t, jetstream.KeyValueConfig{})
	b.must(b.put("a", "1"))
	one, other := realserver.NewProxy(t, server(t).Addr()), realserver.NewProxy(t, server(t).Addr())
	s := source(t, one.Addr(), b.config.Bucket, func(c *Config) {
		c.URL = fmt.Sprintf("nats://%s, nats://%s, nats://%s", realserver.FreeAddress(t), one.Addr(), other.Addr())
	})
	r := start(t, s, nil).has("a", "1")
	for n, round := range []struct{ bad, good *realserver.Proxy }{{one, other}, {other, one}, {one, other}} {
		round.good.Heal()
		round.bad.Refuse()
		round.bad.Cut()
		b.must(b.put("a", fmt.Sprint(n)))
		if n == 2 {
			round.bad.Heal()
			round.bad.Stall()
		}
		r.stop()
		r = start(t, s, r).has("a", fmt.Sprint(n))
	}
}

func TestServerThatIsNone(t *testing.T) {
	for name, test := range map[string]struct{ address, want string }{
		"nobody listens":   {realserver.FreeAddress(t), "connection refused"},
		"another protocol": {greeter(t, "220 mail.example.com ESMTP\r\n"), "nats"},
		"hangs up at once": {greeter(t, ""), "EOF"},
		"no such host":     {"host.invalid:4222", "host.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fails(t, source(t, test.address, "b"))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), `nats nats://`+test.address+`, bucket "b": `) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// greeter sends something to each client and hangs up.
func greeter(t *testing.T, greeting string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(greeting))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return l.Addr().String()
}

func TestStreamThatIsNoBucket(t *testing.T) {
	c := newClient(t, server(t).Addr())
	_, err := c.js.CreateStream(within(t), jetstream.StreamConfig{Name: "KV_plain", Subjects: []string{"plain.>"}})
	if err != nil {
		t.Fatal(err)
	}
	err = fails(t, source(t, server(t).Addr(), "plain"))
	if err == nil || !strings.Contains(err.Error(), `stream "KV_plain" is not a bucket`) {
		t.Errorf("error %v", err)
	}
}

// Watch ends immediately with its context, in any state.
func TestEndWhileConnecting(t *testing.T) {
	proxy := realserver.NewProxy(t, server(t).Addr())
	proxy.Stall()
	s := source(t, proxy.Addr(), "b", func(c *Config) { c.StallAfter = time.Minute })
	r := start(t, s, nil)
	for proxy.Accepted() == 0 {
		<-time.After(time.Millisecond)
	}
	reason := errors.New("enough")
	r.cancel(reason)
	r.gone(reason, 5*time.Second)
}
