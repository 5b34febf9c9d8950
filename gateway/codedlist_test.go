package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// listed is the answer to a request for a list.
type listed struct {
	*http.Response
	body []byte // as it was sent
	text string
}

func list(t *testing.T, method, url string, headers ...string) listed {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := listed{Response: res, body: body, text: string(body)}
	if method == http.MethodGet && res.Header.Get("Content-Encoding") != "" {
		decoded := &http.Response{Header: res.Header, Body: io.NopCloser(strings.NewReader(out.text))}
		gatewaytest.Unzip(decoded)
		text, err := io.ReadAll(decoded.Body)
		if err != nil {
			t.Fatal(err)
		}
		out.text = string(text)
	}
	return out
}

// TestCompressedLists: a list is the same in each coding, is compressed once for all clients, and is
// not compressed for somebody with a credential.
func TestCompressedLists(t *testing.T) {
	r := newRealGateway(t, Config{}, nil)
	defer http.DefaultClient.CloseIdleConnections()
	r.source.Steps <- func(s stream.Sink) error {
		return errors.Join(s.Reset("e2"), gatewaytest.UpsertAll(s, manyResources(5000)), s.Commit(5000))
	}
	for r.watch.Snapshot().Revision() != 5000 {
		<-r.watch.Changed()
	}
	url := "http://" + r.address + "/v1/watches/a/resources?page_size=5000"
	plain := list(t, http.MethodGet, url)
	if n := strings.Count(plain.text, `"key":`); n != 5000 || plain.Header.Get("Content-Encoding") != "" || plain.ContentLength != int64(len(plain.text)) {
		t.Fatalf("%d resources, %v", n, plain.Header)
	}
	for accepts, want := range map[string]string{"zstd, gzip": "zstd", "gzip, deflate, br, zstd": "zstd", "gzip": "gzip", "br": "", "zstd;q=0.1, gzip": "gzip"} {
		got := list(t, http.MethodGet, url, "Accept-Encoding: "+accepts)
		if got.text != plain.text || got.Header.Get("Content-Encoding") != want || want != "" && len(got.body) > len(plain.text)/5 {
			t.Errorf("%s: %d bytes of %d, %v", accepts, len(got.body), len(plain.text), got.Header)
		}
		if got.Header.Get("ETag") != plain.Header.Get("ETag") || !strings.Contains(strings.Join(got.Header.Values("Vary"), ", "), "Accept-Encoding") {
			t.Errorf("%s: %v", accepts, got.Header)
		}
		head := list(t, http.MethodHead, url, "Accept-Encoding: "+accepts)
		if head.Header.Get("Content-Encoding") != want || head.ContentLength != got.ContentLength && want == "" || want != "" && head.ContentLength > 0 {
			t.Errorf("HEAD with %s: %v", accepts, head.Header)
		}
	}
	before := r.gateway.lists.Stats()
	for range 10 {
		list(t, http.MethodGet, url, "Accept-Encoding: zstd")
	}
	if after := r.gateway.lists.Stats(); after.Misses != before.Misses || before.Misses == 0 || after.Bytes > r.gateway.now.Load().cfg.listCache() {
		t.Errorf("%+v, and after 10 more %+v", before, after)
	}
	raw, sent := counter(t, r.gateway, "watchtide_compression_input_bytes_total"), counter(t, r.gateway, "watchtide_compression_output_bytes_total")
	if raw < 10*float64(len(plain.text)) || sent == 0 || sent > raw/5 {
		t.Errorf("the metrics count %.0f bytes compressed to %.0f", raw, sent)
	}
	for _, credential := range []string{"Authorization: Bearer x", "Cookie: session=x"} {
		if got := list(t, http.MethodGet, url, "Accept-Encoding: zstd, gzip", credential); got.Header.Get("Content-Encoding") != "" || got.text != plain.text {
			t.Errorf("with %s: %v", credential, got.Header)
		}
	}
	certified := httptest.NewRequest(http.MethodGet, url, http.NoBody)
	certified.Header.Set("Accept-Encoding", "zstd, gzip")
	certified.TLS = &tls.ConnectionState{}
	for certificates, want := range map[int]string{0: "zstd", 1: ""} {
		certified.TLS.PeerCertificates = make([]*x509.Certificate, certificates)
		got := httptest.NewRecorder()
		r.gateway.Handler().ServeHTTP(got, certified)
		if got.Code != http.StatusOK || got.Header().Get("Content-Encoding") != want {
			t.Errorf("with %d client certificates: %d, %v", certificates, got.Code, got.Header())
		}
	}
	cached := list(t, http.MethodGet, url, "Accept-Encoding: zstd", "If-None-Match: "+plain.Header.Get("ETag"))
	if cached.StatusCode != http.StatusNotModified || !strings.Contains(strings.Join(cached.Header.Values("Vary"), ", "), "Accept-Encoding") {
		t.Errorf("%s, %v", cached.Status, cached.Header)
	}
	for _, path := range []string{"?page_size=1", "/default%2Fweb-000001", "?page_size=x", "?page_token=x"} {
		if got := list(t, http.MethodGet, "http://"+r.address+"/v1/watches/a/resources"+path, "Accept-Encoding: zstd"); got.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %s, %v", path, got.Status, got.Header)
		}
	}
}

// TestListsThatAreNotCompressed by the configuration.
func TestListsThatAreNotCompressed(t *testing.T) {
	for i, c := range []struct {
		config Config
		want   string
	}{
		{Config{StreamSettings: StreamSettings{Compression: CompressionNone}}, ""},
		{Config{StreamSettings: StreamSettings{Compression: CompressionGzip}}, "gzip"},
		{Config{Uncompressed: []string{"a"}}, ""},
		{Config{}, "zstd"},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			r := newRealGateway(t, c.config, nil)
			defer http.DefaultClient.CloseIdleConnections()
			r.write("k", 2, `"`+strings.Repeat("long ", 1000)+`"`)
			for r.watch.Snapshot().Revision() != 2 {
				<-r.watch.Changed()
			}
			got := list(t, http.MethodGet, "http://"+r.address+"/v1/watches/a/resources", "Accept-Encoding: gzip, zstd")
			if got.Header.Get("Content-Encoding") != c.want || !strings.Contains(got.text, "long long") {
				t.Errorf("%v, want %q", got.Header, c.want)
			}
			state := "http://" + r.address + "/v1/watches/a/digests/" + r.watch.Snapshot().Digest().String()
			got = list(t, http.MethodGet, state+"/resources?key=k", "Accept-Encoding: gzip, zstd")
			if got.Header.Get("Content-Encoding") != c.want || !strings.Contains(got.text, "long long") {
				t.Errorf("about the digest: %v, want %q", got.Header, c.want)
			}
		})
	}
}

// TestCompressedAnswersAboutDigests are made once for all who ask for the same, and are not compressed for
// somebody with a credential.
func TestCompressedAnswersAboutDigests(t *testing.T) {
	r := newRealGateway(t, Config{}, nil)
	defer http.DefaultClient.CloseIdleConnections()
	r.source.Steps <- func(s stream.Sink) error {
		return errors.Join(s.Reset("e2"), gatewaytest.UpsertAll(s, manyResources(5000)), s.Commit(5000))
	}
	for r.watch.Snapshot().Revision() != 5000 {
		<-r.watch.Changed()
	}
	state := "http://" + r.address + "/v1/watches/a/digests/" + r.watch.Snapshot().Digest().String()
	for _, path := range []string{"", "/keys?bucket=0&bucket=7", "/keys?bucket=7&bucket=0", "/resources?key=default/web-000001&key=default/web-000002"} {
		plain := list(t, http.MethodGet, state+path)
		if plain.StatusCode != http.StatusOK || plain.Header.Get("Content-Encoding") != "" || plain.ContentLength != int64(len(plain.text)) {
			t.Fatalf("%s: %s, %v", path, plain.Status, plain.Header)
		}
		want := map[string]string{"zstd, gzip": "zstd", "gzip": "gzip", "br": ""}
		for accepts, want := range want {
			if len(plain.text) < 1<<10 {
				want = "" // it is too short
			}
			caching := "no-store" // keys and resources have revisions
			if path == "" {
				caching = "public, max-age=60, immutable"
			}
			for range 2 {
				got := list(t, http.MethodGet, state+path, "Accept-Encoding: "+accepts)
				if got.text != plain.text || got.Header.Get("Content-Encoding") != want || got.ContentLength != int64(len(got.body)) || want != "" && len(got.body) >= len(plain.text) {
					t.Errorf("%s in %s: %d bytes of %d, %v", path, accepts, len(got.body), len(plain.text), got.Header)
				}
				if got.Header.Get("Vary") != "Accept-Encoding" || got.Header.Get("Cache-Control") != caching {
					t.Errorf("%s in %s: %v", path, accepts, got.Header)
				}
			}
			head := list(t, http.MethodHead, state+path, "Accept-Encoding: "+accepts)
			if head.StatusCode != http.StatusOK || head.Header.Get("Content-Encoding") != want || len(head.body) > 0 {
				t.Errorf("HEAD of %s in %s: %v", path, accepts, head.Header)
			}
		}
		for _, credential := range []string{"Authorization: Bearer x", "Cookie: session=x"} {
			if got := list(t, http.MethodGet, state+path, "Accept-Encoding: zstd, gzip", credential); got.Header.Get("Content-Encoding") != "" || got.text != plain.text {
				t.Errorf("%s with %s: %v", path, credential, got.Header)
			}
		}
	}
	if raw, sent := counter(t, r.gateway, "watchtide_compression_input_bytes_total"), counter(t, r.gateway, "watchtide_compression_output_bytes_total"); sent == 0 || sent >= raw {
		t.Errorf("the metrics count %.0f bytes compressed to %.0f", raw, sent)
	}
}
