package consul

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Headers of Consul's HTTP API.
const (
	tokenHeader    = "X-Consul-Token"
	indexHeader    = "X-Consul-Index"
	leaderHeader   = "X-Consul-KnownLeader"
	contactHeader  = "X-Consul-LastContact"
	filteredHeader = "X-Consul-Results-Filtered-By-ACLs"
	backendHeader  = "X-Consul-Query-Backend"
	policyHeader   = "X-Consul-Default-Acl-Policy"
)

func indexOf(r *http.Response) uint64 {
	index, _ := strconv.ParseUint(r.Header.Get(indexHeader), 10, 64)
	return index
}

// read reads an answer of the query.
func (a *api) read(r *http.Response, body io.Reader, out *answer) error {
	out.index = indexOf(r)
	out.filtered = r.Header.Get(filteredHeader) == "true" ||
		a.config.TokenFile == "" && r.Header.Get(policyHeader) == "deny" // those without a token are not told
	out.why = a.config.freshness(r.Header)
	if r.StatusCode == http.StatusNotFound {
		return nil // Consul says so where no key has the prefix
	}
	largest := stream.LargestMessage(a.sink, a.config.MaxMessageBytes)
	charged := &charged{body: body, left: int64(largest), charge: func(n int64) { out.bytes += n; a.sink.Charge(n) }}
	err := a.elements(json.NewDecoder(charged), out)
	if charged.left < 0 {
		if largest < a.config.MaxMessageBytes {
			stream.RefuseMessage(a.sink, largest)
		}
		return fmt.Errorf("%w: the answer has more than %d bytes", errTooLarge, largest)
	}
	return err
}

// errTooLarge means that an answer has more bytes than it may have.
var errTooLarge = errors.New("too large")

// elements reads the elements of a list.
func (a *api) elements(d *json.Decoder, out *answer) error {
	add := func(i item) {
		out.bytes += itemCost
		a.sink.Charge(itemCost)
		out.items = append(out.items, i)
	}
	switch first, err := d.Token(); {
	case err != nil:
		return malformed(err)
	case first == nil:
		return nil // Consul says so where there is nothing
	case first != json.Delim('[') && !a.query.named, first != json.Delim('{') && a.query.named:
		return fmt.Errorf("%w: the answer begins with %.40q, as none of Consul does", stream.ErrInvalid, fmt.Sprint(first))
	}
	for d.More() {
		if err := a.query.element(d, add); err != nil {
			return malformed(err)
		}
	}
	_, err := d.Token()
	return malformed(err)
}

// malformed says of errors of the content that they are such.
func malformed(err error) error {
	if errors.As(err, new(*json.SyntaxError)) || errors.As(err, new(*json.UnmarshalTypeError)) ||
		errors.As(err, new(base64.CorruptInputError)) || errors.As(err, new(*stream.InvalidError)) {
		return fmt.Errorf("%w: the answer is not what Consul answers: %.300v", stream.ErrInvalid, err)
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// release ends the charge of an answer.
func (a *api) release(out *answer) {
	a.sink.Charge(-out.bytes)
	out.bytes, out.items = 0, nil
}

// freshness returns why an answer may not be the present state; empty: it is.
func (c *Config) freshness(h http.Header) string {
	if h.Get(backendHeader) == "streaming" {
		return "" // an agent that follows the servers itself never says that it knows a leader
	}
	if h.Get(leaderHeader) == "false" {
		return noLeader
	}
	contact, err := strconv.ParseInt(h.Get(contactHeader), 10, 64)
	if since := time.Duration(contact) * time.Millisecond; err == nil && since > c.ProbeInterval {
		return fmt.Sprintf("the server that answers has not heard of the leader for %v", since)
	}
	return ""
}

// noLeader is why nothing can be known of the present state.
const noLeader = "no leader: the servers have none, or the one that answers knows of none"

// charged counts and bounds what is read.
type charged struct {
	body   io.Reader
	left   int64 // negative: there is more than may be
	charge func(int64)
}

// Read implements io.Reader.
func (c *charged) Read(p []byte) (int, error) {
	if c.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.body.Read(p)
	c.left -= int64(n)
	c.charge(int64(n))
	return n, err
}
