//go:build servers

package soak

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// target is the watch that is attacked, except by attacks that follow others: it
// is writable, and its listing is large.
const (
	target      = "notes"
	targetKeys  = 16
	targetValue = 512 << 10
)

// fortify fills the watch that is attacked.
func (g *gateway) fortify() error {
	value := `"` + strings.Repeat("x", targetValue) + `"`
	for n := range targetKeys {
		url := fmt.Sprintf("http://%s/v1/watches/%s/resources/k%d", g.http, target, n)
		request, err := http.NewRequest(http.MethodPut, url, strings.NewReader(value))
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusCreated {
			return fmt.Errorf("PUT %s: %s", url, response.Status)
		}
	}
	return nil
}

func drained(body io.Reader) error {
	_, err := io.Copy(io.Discard, body)
	return err
}

func listing(host string) string {
	return "GET /v1/watches/" + target + "/resources HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
}

// answered reads the head of an answer and classifies it.
func answered(ctx context.Context, r *bufio.Reader) string {
	line, err := r.ReadString('\n')
	if _, status, ok := strings.Cut(strings.TrimSpace(line), " "); err == nil && ok {
		return "answered " + status
	}
	return cut(ctx)
}

// cut reports whether the gateway or the attacker ended a connection.
func cut(ctx context.Context) string {
	if ctx.Err() != nil {
		return held
	}
	return closed
}

// slowly reads an answer, of at most so many bytes a second, with a small buffer. A
// refusal is not read slowly.
func slowly(ctx context.Context, c *net.TCPConn, perSecond int) string {
	c.SetReadBuffer(4 << 10)
	answer := answered(ctx, bufio.NewReaderSize(c, 16))
	if answer != "answered 200 OK" {
		return answer
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for p := make([]byte, perSecond); ; {
		if _, err := c.Read(p); err != nil {
			return cut(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return held
		}
	}
}

// trickleBodies announces bodies: one that is too large, and some that are allowed
// but take forever.
func (a *attacker) trickleBodies(ctx context.Context) {
	put := func(length int) string {
		return fmt.Sprintf("PUT /v1/watches/%s/resources/trickle HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n\"", target, a.http, length)
	}
	a.each(ctx, 1, a.http, func(c *net.TCPConn) string {
		io.WriteString(c, put(16<<20))
		return answered(ctx, bufio.NewReader(c))
	})
	a.each(ctx, 8, a.http, func(c *net.TCPConn) string {
		io.WriteString(c, put(1<<20))
		trickling := make(chan struct{})
		defer func() { c.Close(); <-trickling }()
		go func() {
			defer close(trickling)
			a.often(ctx, 10, func(int) bool { _, err := io.WriteString(c, strings.Repeat("x", 100)); return err == nil })
		}()
		return answered(ctx, bufio.NewReader(c))
	})
}

func (a *attacker) readListingsSlowly(ctx context.Context) {
	a.each(ctx, 20, a.http, func(c *net.TCPConn) string {
		io.WriteString(c, listing(a.http))
		return slowly(ctx, c, 1<<10)
	})
}

func (a *attacker) readStreamsSlowly(ctx context.Context) {
	a.each(ctx, 10, a.http, func(c *net.TCPConn) string {
		io.WriteString(c, "GET /v1/events?watch="+target+"&watch=settings HTTP/1.1\r\nHost: "+a.http+"\r\nAccept: text/event-stream\r\n\r\n")
		return slowly(ctx, c, 100)
	})
}

// nameForeignHosts sends the requests of a page whose host name was pointed at
// the gateway.
func (a *attacker) nameForeignHosts(ctx context.Context) {
	requests := []string{
		listing("evil.example"),
		"GET http://evil.example/v1/watches/" + target + "/resources HTTP/1.1\r\nHost: " + a.http + "\r\n\r\n",
		"DELETE /v1/watches/" + target + "/resources/none HTTP/1.1\r\nHost: evil.example\r\n\r\n",
	}
	a.often(ctx, 10, func(n int) bool {
		a.each(ctx, 1, a.http, func(c *net.TCPConn) string {
			io.WriteString(c, requests[n%len(requests)])
			return answered(ctx, bufio.NewReader(c))
		})
		return true
	})
}

// halfClose ends its own direction after the request, and continues reading.
func (a *attacker) halfClose(ctx context.Context) {
	a.each(ctx, 10, a.http, func(c *net.TCPConn) string {
		io.WriteString(c, "GET /v1/events?watch=services HTTP/1.1\r\nHost: "+a.http+"\r\nAccept: text/event-stream\r\n\r\n")
		c.CloseWrite()
		io.Copy(io.Discard, c)
		return cut(ctx)
	})
}

// askForNothing lists and follows parts of a watch that are empty.
func (a *attacker) askForNothing(ctx context.Context) {
	a.often(ctx, 30, func(n int) bool {
		path := fmt.Sprintf("/v1/watches/settings/resources?prefix=nothing-%d", n)
		if n%2 == 0 {
			path = fmt.Sprintf("/v1/events?watch=settings&prefix=nothing-%d&until=end_of_snapshot", n)
		}
		a.each(ctx, 1, a.http, func(c *net.TCPConn) string {
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, a.http)
			return answered(ctx, bufio.NewReader(c))
		})
		return true
	})
}

func (a *attacker) abortListings(ctx context.Context) {
	a.often(ctx, 50, func(int) bool {
		a.each(ctx, 1, a.http, func(c *net.TCPConn) string {
			io.WriteString(c, listing(a.http))
			c.SetLinger(0)
			return "aborted"
		})
		return true
	})
}

// sendTwoLengths sends requests whose body ends at two places, which can hide a
// second request from a proxy.
func (a *attacker) sendTwoLengths(ctx context.Context) {
	a.often(ctx, 10, func(int) bool {
		a.each(ctx, 1, a.http, func(c *net.TCPConn) string {
			fmt.Fprintf(c, "PUT /v1/watches/%s/resources/two HTTP/1.1\r\nHost: %s\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n12\r\n0\r\n\r\n%s",
				target, a.http, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			c.SetReadDeadline(time.Now().Add(patience))
			all, _ := io.ReadAll(c)
			return fmt.Sprintf("%d answers", strings.Count(string(all), "HTTP/1.1 "))
		})
		return true
	})
}

// stayIdle keeps connections open between two requests.
func (a *attacker) stayIdle(ctx context.Context) {
	a.each(ctx, 50, a.http, func(c *net.TCPConn) string {
		io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: "+a.http+"\r\n\r\n")
		io.Copy(io.Discard, c)
		return cut(ctx)
	})
}

// stayOpen opens connections for gRPC and sends nothing, or half of the preface.
func (a *attacker) stayOpen(ctx context.Context) {
	a.each(ctx, 10, a.grpc, func(c *net.TCPConn) string {
		if c.LocalAddr().(*net.TCPAddr).Port%2 == 0 {
			io.WriteString(c, "PRI * HTTP/2.0\r\n")
		}
		io.Copy(io.Discard, c)
		return cut(ctx)
	})
}
