//go:build servers

package deploy_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// TestProxiesPassOn checks what reaches a client through each proxy: the first event and
// every later one without waiting for more bytes, headers, compression, keys, addresses.
func TestProxiesPassOn(t *testing.T) {
	for _, p := range proxies {
		t.Run(p.program, func(t *testing.T) {
			b := newBackend(t)
			r := newReplica(t, following(b.url), "heartbeat: 1h")
			url := p.start(t, r.address, r.address)
			t.Run("events", func(t *testing.T) { passEvents(t, p, b, url, transportFrom(t, "127.0.0.1")) })
			t.Run("events over HTTP 1.1", func(t *testing.T) {
				transport := transportFrom(t, "127.0.0.1")
				transport.ForceAttemptHTTP2, transport.TLSClientConfig, transport.TLSNextProto = false, new(tls.Config), nil
				transport.Protocols = new(http.Protocols)
				transport.Protocols.SetHTTP1(true)
				passEvents(t, p, b, url, transport)
			})
			t.Run("headers", func(t *testing.T) { passHeaders(t, url) })
			t.Run("gzip", func(t *testing.T) { passGzip(t, url) })
			t.Run("requests", func(t *testing.T) { passRequests(t, url) })
			t.Run("addresses", func(t *testing.T) { passAddresses(t, r, url) })
		})
	}
}

// TestHAProxyHoldsBackNoEvent checks that "option http-no-delay" is needed, and is enough, where
// something else ends TLS: HAProxy sends the chunks of HTTP/1.1 with MSG_MORE, and the kernel holds
// each back for 200 ms. The fastest of 20 changes is compared, which a busy machine does not slow
// down.
func TestHAProxyHoldsBackNoEvent(t *testing.T) {
	b := newBackend(t)
	r := newReplica(t, following(b.url), "heartbeat: 1h")
	const held = 100 * time.Millisecond
	fastest := func(changes ...string) time.Duration {
		p := haproxy
		p.changes = append([]string{" ssl crt /etc/haproxy/events.example.com.pem alpn h2,http/1.1", ""}, changes...)
		url := strings.Replace(p.start(t, r.address, r.address), "https:", "http:", 1)
		return passEvents(t, p, b, url, transportFrom(t, "127.0.0.1"))[0]
	}
	if took := fastest(); took > held {
		t.Errorf("no change takes less than %v: HAProxy holds them back", took)
	}
	if took := fastest("option http-no-delay", ""); took < held {
		t.Logf("without the option a change takes %v: this HAProxy holds nothing back, and does not need it", took)
	}
}

// passEvents commits one change after the other, each when the one before has arrived. No
// heartbeat follows, so an event that waits in a buffer never comes. It returns how long each
// takes, in order.
func passEvents(t *testing.T, p proxy, b *backend, url string, transport *http.Transport) []time.Duration {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	var first, sent time.Duration
	var delays []time.Duration
	s := client.Stream{URL: url + "/v1/events?watch=services", Client: &http.Client{Transport: transport}, StallAfter: never}
	s.Handle = func(e client.Event) error {
		switch e.Type {
		case "hello":
			first = time.Since(began)
			return nil
		case "upsert":
			if sent == 0 {
				return nil // of the snapshot
			}
			delays = append(delays, time.Since(began)-sent)
		case "end_of_snapshot":
		default:
			return nil
		}
		if len(delays) == 20 {
			cancel()
			return nil
		}
		sent = time.Since(began)
		b.commit(streamtest.Write{Key: "delay", Value: streamtest.ValueOf(len(delays))})
		return nil
	}
	ending := s.Run(ctx)
	if len(delays) < 20 {
		t.Fatalf("%d of 20 changes came through: %v", len(delays), ending.Err)
	}
	slices.Sort(delays)
	t.Logf("%s: the first event after %.1f ms, changes after %.1f ms (median of 20)", p.program, ms(first), ms(delays[10]))
	return delays
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func passHeaders(t *testing.T, url string) {
	response := open(t, transportFrom(t, "127.0.0.1"), url+"/v1/events?watch=services", nil)
	if response.ProtoMajor != 2 {
		t.Errorf("the browser gets %s, want HTTP/2", response.Proto)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache, no-store, no-transform", "Content-Encoding": "", "Incremental": "?1",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// passGzip checks that the gateway's compression comes through, flush by flush.
func passGzip(t *testing.T, url string) {
	response := open(t, transportFrom(t, "127.0.0.1"), url+"/v1/events?watch=services", http.Header{"Accept-Encoding": {"gzip"}})
	if got := response.Header.Values("Content-Encoding"); !slices.Equal(got, []string{"gzip"}) {
		t.Fatalf("Content-Encoding is %q, want gzip once", got)
	}
	unzipped, err := gzip.NewReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	awaitLine(t, unzipped, "event: end_of_snapshot")
}

func passRequests(t *testing.T, url string) {
	transport := transportFrom(t, "127.0.0.1")
	response := open(t, transport, url+"/v1/watches/services/resources/a%2Fb%2F%2Fc", nil)
	var resource struct{ Key string }
	if err := json.NewDecoder(response.Body).Decode(&resource); err != nil || resource.Key != "a/b//c" {
		t.Errorf("a key with slashes arrives as %q (%v)", resource.Key, err)
	}
	// The watch is not writable; a proxy that minds the size would say 413.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url+"/v1/watches/services/resources/large", strings.NewReader(`"`+strings.Repeat("x", 16<<20-2)+`"`))
	if err != nil {
		t.Fatal(err)
	}
	response, err = transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if problem, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a value of 16 MiB is answered with %d %s, want 405 of the gateway", response.StatusCode, problem)
	}
}

// passAddresses checks that the gateway learns from trusted_proxies who its client is,
// whatever the client says about itself.
func passAddresses(t *testing.T, r *replica, url string) {
	const from = "127.0.0.2"
	response := open(t, transportFrom(t, from), url+"/v1/events?watch=services", http.Header{"X-Forwarded-For": {"192.0.2.7"}, "User-Agent": {"addressed"}})
	awaitLine(t, response.Body, "event: end_of_snapshot")
	var list struct {
		Subscribers []struct {
			Address   string
			UserAgent string `json:"user_agent"`
		}
	}
	r.ask("/v1/subscribers", func(response *http.Response) {
		if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
			t.Error(err)
		}
	})
	for _, s := range list.Subscribers {
		if host, _, err := net.SplitHostPort(s.Address); s.UserAgent == "addressed" {
			if err != nil {
				host = s.Address
			}
			if host != from {
				t.Errorf("the gateway takes the client for %s, want %s", s.Address, from)
			}
			return
		}
	}
	t.Errorf("the gateway does not list the client: %v", list.Subscribers)
}

// TestIdleStreamsBehindProxies checks that heartbeats keep a stream open for ten times
// the idle time-out of the proxy, and that the proxy cuts it without them.
func TestIdleStreamsBehindProxies(t *testing.T) {
	const idle = 2 * time.Second
	b := newBackend(t)
	beating, silent := newReplica(t, following(b.url), "heartbeat: 200ms"), newReplica(t, following(b.url), "heartbeat: 1h")
	stream := func(p proxy, r *replica) io.Reader {
		return open(t, transportFrom(t, "127.0.0.1"), p.start(t, r.address, r.address)+"/v1/events?watch=services", nil).Body
	}
	kept, cut := map[string]io.Reader{}, map[string]io.Reader{}
	for _, p := range proxies {
		switch p.program {
		case "nginx":
			p.changes = []string{"proxy_read_timeout 18s", "proxy_read_timeout 2s"}
		case "haproxy":
			p.changes = []string{"timeout client 60s", "timeout client 2s", "set-timeout server 35s", "set-timeout server 2s"}
		case "caddy":
			p.changes = []string{"read_timeout 35s", "read_timeout 2s"}
		}
		kept[p.program] = stream(p, beating)
		cut[p.program] = stream(p, silent)
	}
	began := time.Now()
	for name, body := range cut {
		if text, err := io.ReadAll(body); !strings.Contains(string(text), "event: end_of_snapshot") || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s ended a silent stream too soon, or not at all: %q, %v", name, text, err)
		}
	}
	for name, body := range kept {
		lines := bufio.NewScanner(body)
		for time.Since(began) < 10*idle {
			if !lines.Scan() {
				t.Errorf("%s ended a stream with heartbeats after %v: %v", name, time.Since(began), lines.Err())
				break
			}
		}
		// What waited in buffers is older: the stream must still go on.
		for range 3 {
			awaitLine(t, body, ": heartbeat")
		}
	}
}

// TestFullDiskOfTheLog: lines that cannot be written are lost, and nothing else is.
func TestFullDiskOfTheLog(t *testing.T) {
	b := newBackend(t)
	r := newReplicaAs(t, following(b.url), "heartbeat: 1h", func(path, file string) realserver.Command {
		return realserver.Command{Path: "/bin/sh", Args: []string{"-c", `exec "$0" serve --config "$1" >/dev/full 2>&1`, path, file}}
	})
	for range 20 {
		if status := r.ask("/readyz", nil); status != http.StatusOK {
			t.Fatalf("/readyz: %d", status)
		}
		request, err := http.NewRequest(http.MethodGet, "http://"+r.address+"/v1/watches", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Close, request.Host = true, "other.example.com" // the host is logged
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	body := open(t, transportFrom(t, "127.0.0.1"), "http://"+r.address+"/v1/events?watch=services", nil).Body
	awaitLine(t, body, "event: end_of_snapshot")
	b.commit(streamtest.Write{Key: "late", Value: streamtest.ValueOf(1)})
	awaitLine(t, body, `event: upsert`)
	r.stop()
}

// transportFrom returns a transport whose connections come from an address of loopback.
func transportFrom(t *testing.T, address string) *http.Transport {
	transport := newTransport()
	transport.DisableCompression = true
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport.DialContext = func(ctx context.Context, _, to string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(to)
		if err != nil {
			return nil, err
		}
		return dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// open makes a GET request, which must be answered with 200. The body ends with the test.
func open(t *testing.T, transport http.RoundTripper, url string, header http.Header) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		response.Body.Close()
	})
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", url, response.Status)
	}
	return response
}

// awaitLine reads until a line comes.
func awaitLine(t *testing.T, r io.Reader, want string) {
	t.Helper()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if lines.Text() == want {
			return
		}
	}
	t.Fatalf("%q did not come: %v", want, lines.Err())
}
