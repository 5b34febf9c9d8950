package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	gatewayclient "github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// manyResources returns resources that are similar but not equal.
func manyResources(n int) []stream.Resource {
	all := make([]stream.Resource, n)
	for i := range all {
		value := fmt.Sprintf(`{"name":"web-%06d","state":"running","ip":"10.0.%d.%d","ports":[80,%d]}`, i, i/251%251, i%251, 9000+i%977)
		all[i] = gatewaytest.Resource(fmt.Sprintf("default/web-%06d", i), uint64(i+1), value)
	}
	return all
}

// rawBody reads the body of a response as it was sent.
func rawBody(t *testing.T, url, encoding string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", encoding)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestSnapshotIsCompressedOnce checks this for all streams that request it, also
// after a change.
func TestSnapshotIsCompressedOnce(t *testing.T) {
	for _, coding := range []string{"gzip", "zstd"} {
		t.Run(coding, func(t *testing.T) { testSnapshotIsCompressedOnce(t, coding) })
	}
}

func testSnapshotIsCompressedOnce(t *testing.T, coding string) {
	r := newRealGateway(t, Config{StreamSettings: StreamSettings{MaxAge: -1}}, nil)
	defer http.DefaultClient.CloseIdleConnections()
	all := manyResources(20_000)
	r.source.Steps <- func(s stream.Sink) error {
		return errors.Join(s.Reset("e2"), gatewaytest.UpsertAll(s, all), s.Commit(20_000))
	}
	for r.watch.Snapshot().Revision() != 20_000 {
		<-r.watch.Changed()
	}
	url := "http://" + r.address + "/v1/events?watch=a&until=end_of_snapshot"
	plain := len(rawBody(t, url, "identity"))
	zipped := rawBody(t, url, coding)
	if len(zipped) > plain/4 {
		t.Errorf("%d bytes became %d", plain, len(zipped))
	}
	first := r.gateway.pieces.Stats()
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() { rawBody(t, url, coding) })
	}
	clients.Wait()
	if again := r.gateway.pieces.Stats(); again.Misses != first.Misses || again.Hits < first.Misses { // shards send most of it as stretches
		t.Errorf("%+v after one, %+v after 20 more", first, again)
	}
	r.write("default/web-010000", 20_001, `"news"`)
	for r.watch.Snapshot().Revision() != 20_001 {
		<-r.watch.Changed()
	}
	rawBody(t, url, coding)
	if changed := r.gateway.pieces.Stats(); changed.Misses > first.Misses+3 {
		t.Errorf("%d parts were compressed for a snapshot, and %d for one with one change", first.Misses, changed.Misses-first.Misses)
	}
	raw, sent := counter(t, r.gateway, "watchtide_compression_input_bytes_total"), counter(t, r.gateway, "watchtide_compression_output_bytes_total")
	if want := 22 * float64(plain); raw < want-1000 || raw > want+1000 || sent > raw/4 || sent < 22*float64(len(zipped))-1000 {
		t.Errorf("the metrics count %.0f bytes compressed to %.0f: want %.0f", raw, sent, want)
	}
	if got := counter(t, r.gateway, "watchtide_compression_cache_hits_total"); got < 50 {
		t.Errorf("%.0f hits are counted", got)
	}
}

// TestCompressionThatIsTurnedOff checks compression that is turned off, not
// requested, or refused.
func TestCompressionThatIsTurnedOff(t *testing.T) {
	for _, c := range []struct {
		compression    Compression
		encoding, want string
	}{
		{"", "gzip, deflate", "gzip"}, {CompressionGzip, "gzip", "gzip"}, {CompressionNone, "gzip", ""},
		{"", "gzip, deflate, br, zstd", "zstd"}, {CompressionZstd, "zstd", "zstd"}, {CompressionGzip, "gzip, zstd", "gzip"},
		{CompressionGzip, "zstd", ""}, {CompressionNone, "zstd, gzip", ""}, {"", "zstd;q=0.5, gzip", "gzip"}, {"", "zstd;q=0", ""},
		{"", "identity", ""}, {"", "gzip;q=0", ""}, {"", "br", ""},
	} {
		r := newRealGateway(t, Config{StreamSettings: StreamSettings{Compression: c.compression}}, nil)
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.address+"/v1/events?watch=a&until=end_of_snapshot", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept-Encoding", c.encoding)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Header.Get("Content-Encoding"); got != c.want || !strings.Contains(res.Header.Get("Vary"), "Accept-Encoding") {
				t.Errorf("%s with %q, where it is %q: %q, want %q", method, c.encoding, c.compression, got, c.want)
			}
			res.Body.Close()
		}
		http.DefaultClient.CloseIdleConnections()
	}
}

// TestClientOfTheRepository checks that it requests gzip, as net/http does by itself,
// and gets each event when it is sent.
func TestClientOfTheRepository(t *testing.T) {
	r := newRealGateway(t, Config{}, nil)
	defer http.DefaultClient.CloseIdleConnections()
	events := make(chan gatewayclient.Event, 100)
	s := &gatewayclient.Stream{URL: "http://" + r.address + "/v1/events?watch=a", Client: &http.Client{Transport: http.DefaultTransport},
		Handle: func(e gatewayclient.Event) error { events <- e; return nil }}
	ended := make(chan gatewayclient.Ending, 1)
	go func() { ended <- s.Run(t.Context()) }()
	until := func(done func(gatewayclient.Event) bool) {
		for e := range events {
			if done(e) {
				return
			}
		}
	}
	until(func(e gatewayclient.Event) bool { return e.Type == "end_of_snapshot" })
	for revision := uint64(2); revision < 12; revision++ {
		r.write("k", revision, `"`+strings.Repeat("news ", int(revision*20))+`"`)
		until(func(e gatewayclient.Event) bool { return e.Type == "upsert" && e.Revision == fmt.Sprint(revision) })
	}
	r.registry.Remove("a")
	if end := <-ended; end.Err != nil || end.Goodbye == nil {
		t.Errorf("%+v", end)
	}
	if counter(t, r.gateway, "watchtide_compression_input_bytes_total") < 1000 {
		t.Error("nothing was compressed")
	}
}

// TestSnapshotWithCurl: a client that others wrote reads snapshots and lists in each coding that it knows.
func TestSnapshotWithCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	version, err := exec.Command(curl, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	r := newRealGateway(t, Config{}, nil)
	r.source.Steps <- func(s stream.Sink) error {
		return errors.Join(s.Reset("e2"), gatewaytest.UpsertAll(s, manyResources(5000)), s.Commit(5000))
	}
	for r.watch.Snapshot().Revision() != 5000 {
		<-r.watch.Changed()
	}
	for _, coding := range []string{"gzip", "zstd"} {
		if name := map[string]string{"gzip": "libz", "zstd": "zstd"}[coding]; !strings.Contains(string(version), name) {
			t.Logf("curl does not know %s", coding)
			continue
		}
		for _, path := range []string{"events?until=end_of_snapshot", "resources?page_size=5000"} {
			out, err := exec.CommandContext(t.Context(), curl, "-sS", "--compressed", "-H", "Accept-Encoding: "+coding, "-w", "%{size_download}", "http://"+r.address+"/v1/watches/a/"+path).Output()
			sent, convErr := strconv.Atoi(string(out[bytes.LastIndexAny(out, "\n")+1:]))
			if n := bytes.Count(out, []byte(`"key":`)); err != nil || convErr != nil || n != 5000 || sent > len(out)/4 {
				t.Errorf("%s of %s: %d resources, %d bytes of %d were sent, %v, %v", coding, path, n, sent, len(out), err, convErr)
			}
		}
	}
}
