package gateway

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/stream"
)

// TestHTTP2StreamsCostNoGoroutine opens as many streams as a connection may have, over TLS and with the client of
// net/http: they cost the two goroutines of their connection. All are sent a change, and a large one.
func TestHTTP2StreamsCostNoGoroutine(t *testing.T) {
	onShards(t)
	secure, roots := certificate(t)
	r := newRealGateway(t, Config{}, secure)
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	transport := &http.Transport{Protocols: &protocols, TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true}
	defer transport.CloseIdleConnections()
	open := func() *bufio.Reader {
		response, err := (&http.Client{Transport: transport}).Get("https://" + r.address + "/v1/events?watch=a&format=ndjson")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		body := bufio.NewReaderSize(response.Body, 2<<20)
		if err := readTo(body, "end_of_snapshot"); err != nil {
			t.Fatal(err)
		}
		return body
	}
	streams := []*bufio.Reader{open()}
	before := gatewaytest.GoroutinesIn(gatewaytest.GatewayCode)
	for len(streams) < netconn.MaxStreams {
		streams = append(streams, open())
	}
	await(t, func() (bool, string) { // the handlers return after their streams have begun
		more := gatewaytest.GoroutinesIn(gatewaytest.GatewayCode) - before
		return more < 10, fmt.Sprintf("%d streams cost %d goroutines", len(streams), more) // the shards may be among them
	})
	r.write("k", 2, `"small"`)
	r.write("large", 3, `"`+strings.Repeat("x", 200<<10)+`"`)
	for _, body := range streams {
		if err := errors.Join(readTo(body, `"small"`), readTo(body, `"large"`)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHTTP2ManySnapshots reads a snapshot over many streams of a few connections at once: each gets all of it.
func TestHTTP2ManySnapshots(t *testing.T) {
	secure, roots := certificate(t)
	r := newRealGateway(t, Config{}, secure)
	const resources, streams = 200, 60
	value := `"` + strings.Repeat("x", 4<<10) + `"`
	r.source.Steps <- func(s stream.Sink) error {
		for i := range resources {
			if err := s.Upsert(gatewaytest.Resource(fmt.Sprint("k", i), 2, value)); err != nil {
				return err
			}
		}
		return s.Commit(2)
	}
	first := openHand(t, r.address, roots, rawGet("/v1/events?watch=a&until=end_of_snapshot"))
	_ = first.Close()
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	transport := &http.Transport{Protocols: &protocols, TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true}
	defer transport.CloseIdleConnections()
	sizes := make(chan string, streams)
	for range streams {
		go func() {
			response, err := (&http.Client{Transport: transport}).Get("https://" + r.address + "/v1/events?watch=a&format=ndjson&until=end_of_snapshot")
			if err != nil {
				sizes <- err.Error()
				return
			}
			defer response.Body.Close()
			all, err := io.ReadAll(response.Body)
			sizes <- fmt.Sprint(strings.Count(string(all), `"type":"upsert"`), strings.Count(string(all), "goodbye"), err)
		}()
	}
	for range streams {
		if got := <-sizes; got != fmt.Sprint(resources+1, 1, nil) && got != fmt.Sprint(resources, 1, nil) {
			t.Errorf("a stream got %s", got)
		}
	}
}

// TestHTTP2Curl: curl, which has nghttp2, reads streams, a list and a refusal over one connection.
func TestHTTP2Curl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	secure, _ := certificate(t) // OpenSSL does not take an authority for a server
	r := newRealGateway(t, Config{}, secure)
	arguments := []string{"--silent", "--http2", "--insecure", "--max-time", "60", "--write-out", "%{http_version} %{response_code} %{num_connects}\n"}
	const events = "/v1/events?watch=a&until=end_of_snapshot"
	for _, path := range []string{events, events + "&format=ndjson", "/v1/watches/a/resources", "/v1/watches/none", events} {
		arguments = append(arguments, "https://"+r.address+path)
	}
	out, err := exec.CommandContext(t.Context(), curl, append(arguments, "--compressed")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := string(out)
	for what, want := range map[string]int{"event: goodbye": 2, "event: end_of_snapshot": 2, `"type":"goodbye"`: 3, "2 200 1\n": 1, "2 200 0\n": 3, "2 404 0\n": 1} {
		if n := strings.Count(got, what); n != want {
			t.Errorf("%d times %q, want %d:\n%s", n, what, want, got)
		}
	}
}
