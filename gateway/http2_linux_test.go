package gateway

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
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
