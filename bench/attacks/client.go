package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

// client is a principal at an address of its own. Any goroutine may use it.
type client struct {
	base, token string
	header      http.Header // of each request
	http        *http.Client
}

// as returns a client: who is a principal of accounts, or empty; host is its address, which
// must be in 127.0.0.0/8.
func (t *target) as(who, host string) *client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}, Timeout: process.Patience}
	c := &client{base: "http://" + t.HTTP, http: &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16}}}
	if who != "" {
		c.token = token(who)
	}
	return c
}

// operator returns a client without credentials of the listener for operators.
func (t *target) operator() *client {
	c := t.as("", "127.0.0.1")
	c.base = "http://" + t.Operations
	return c
}

// with returns the client with a further header.
func (c *client) with(name, value string) *client {
	further := *c
	further.header = c.header.Clone()
	if further.header == nil {
		further.header = http.Header{}
	}
	further.header.Set(name, value)
	return &further
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
	took   time.Duration // until its last byte
}

// ask makes a request, and reads the whole answer.
func (c *client) ask(ctx context.Context, method, path, body string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, process.Patience)
	defer cancel()
	began := time.Now()
	response, err := c.open(ctx, method, path, body)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text), time.Since(began)}, err
}

// get is ask with the method GET.
func (c *client) get(ctx context.Context, path string) (answer, error) {
	return c.ask(ctx, http.MethodGet, path, "")
}

// put writes a resource. It fails unless that is accepted.
func (c *client) put(ctx context.Context, watch, key, value string) error {
	a, err := c.ask(ctx, http.MethodPut, "/v1/watches/"+watch+"/resources/"+key, value)
	if err == nil && a.status >= 300 {
		err = fmt.Errorf("put %s: %d %s", key, a.status, a.body)
	}
	return err
}

// open makes a request, and returns once it is answered. Close the body.
func (c *client) open(ctx context.Context, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, c.header)
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.http.Do(r)
}

// follow opens a stream, and calls f for each of its lines until ctx is done or the stream
// ends. The function that it returns waits for that.
func (c *client) follow(ctx context.Context, path string, f func(line string)) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		response, err := c.open(ctx, http.MethodGet, path, "")
		if err != nil {
			return
		}
		defer response.Body.Close()
		for lines := bufio.NewReader(response.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			f(line)
		}
	}()
	return func() { <-done }
}
