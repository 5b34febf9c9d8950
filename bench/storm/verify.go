package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
)

// verify has all subscribers come back at once with a position of another order, and the state from
// before the changes. Each is sent the digest of the state, and reads the table of its buckets, the
// keys of those that differ, and the resources that have changed, as the clients do: in gzip, and on one
// connection beside that of the stream, but without their random wait, and without waiting for an answer
// before the next request.
func (p plan) verify(g *gatewayProcess) error {
	var digest []byte
	streams, err := load.New(load.Options{
		Address: g.address, Done: []byte(`"verify":true`),
		OnBytes: func(_ int, b []byte) {
			if digest == nil {
				digest = digestIn(b)
			}
		},
	})
	if err != nil {
		return err
	}
	defer streams.Close()
	m := measureFrom(g)
	stream := load.With([]byte("GET /v1/events?watch=storm&digest=1&resume=digest HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"),
		"Last-Event-ID", "storm@another-1")
	if err := streams.Open(p.subscribers, load.Request{Bytes: stream}); err != nil {
		return err
	}
	if err := p.await(streams, m, uint64(p.subscribers)); err != nil {
		return err
	}
	if digest == nil {
		return fmt.Errorf("no stream has a digest")
	}
	fmt.Print("the streams: ")
	m.print(streams.Stats())
	all := streams.Stats()
	var buckets, keys []string
	for i := range min(p.changes, 64) {
		buckets = append(buckets, fmt.Sprint("bucket=", i))
		keys = append(keys, fmt.Sprint("key=key-", i*(p.resources/p.changes)))
	}
	state := fmt.Sprintf("/v1/watches/storm/digests/%s", digest)
	sent, err := p.read(g, m, state, state+"/keys?"+strings.Join(buckets, "&"), state+"/resources?"+strings.Join(keys, "&"))
	if err != nil {
		return fmt.Errorf("the tables, keys and resources: %w", err)
	}
	all.Bytes += sent.Bytes
	fmt.Printf("with the tables, keys and resources (%d refusals): ", sent.Refused)
	m.print(all)
	return nil
}

// digestIn returns the digest in some bytes of a stream; nil: there is none, or not all of it.
func digestIn(b []byte) []byte {
	_, after, found := bytes.Cut(b, []byte(`"digest":"`))
	digest, _, whole := bytes.Cut(after, []byte(`"`))
	if !found || !whole {
		return nil
	}
	return bytes.Clone(digest)
}

// read has each subscriber make requests on one connection, and read the answers. One of which any is
// refused asks again a second later.
func (p plan) read(g *gatewayProcess, m *measurement, paths ...string) (sent load.Stats, err error) {
	for left := p.subscribers; left > 0; {
		one, err := p.readOnce(g, m, left, paths)
		if err != nil {
			return sent, err
		}
		sent.Bytes, sent.Refused = sent.Bytes+one.Bytes, sent.Refused+one.Refused
		if left = int(one.Refused); left > 0 {
			<-time.After(time.Second)
		}
	}
	return sent, nil
}

func (p plan) readOnce(g *gatewayProcess, m *measurement, n int, paths []string) (load.Stats, error) {
	c, err := load.New(load.Options{Address: g.address, EndIsDone: true})
	if err != nil {
		return load.Stats{}, err
	}
	defer c.Close()
	var requests []byte
	for i, path := range paths {
		requests = fmt.Appendf(requests, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n", path)
		if i == len(paths)-1 {
			requests = append(requests, "Connection: close\r\n"...)
		}
		requests = append(requests, "\r\n"...)
	}
	if err := c.Open(n, load.Request{Bytes: requests}); err != nil {
		return load.Stats{}, err
	}
	for s := c.Stats(); int(s.Done+s.Refused) < n; s = c.Stats() {
		if s.Lost > 0 {
			return s, fmt.Errorf("%d connections were lost", s.Lost)
		}
		if _, err := c.Poll(100 * time.Millisecond); err != nil {
			return s, err
		}
		m.sample()
	}
	s := c.Stats()
	s.Refused = refused(c, n)
	return s, nil
}

// refused returns how many connections were sent less than the others: the same was asked for on all of
// them, and a refusal is shorter than an answer.
func refused(c *load.Client, n int) (short uint64) {
	most := uint64(0)
	for i := range n {
		most = max(most, c.Bytes(i))
	}
	for i := range n {
		if c.Bytes(i) < most {
			short++
		}
	}
	return short
}
