package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestNewRefusesInvalidURLs(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:8080", "ftp://x", "http://", "http://a b", "localhost"} {
		if _, err := New(bad, Options{}); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// roundTrip is a transport that a program brings.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDefaultTransportMayBeWrapped, as programs do that trace their requests.
func TestDefaultTransportMayBeWrapped(t *testing.T) {
	usual := http.DefaultTransport
	defer func() { http.DefaultTransport = usual }()
	http.DefaultTransport = roundTrip(usual.RoundTrip)
	s, err := New("http://127.0.0.1:1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mine, theirs := NewTransport(), usual.(*http.Transport)
	if mine.Proxy == nil || mine.DialContext == nil || mine.ForceAttemptHTTP2 != theirs.ForceAttemptHTTP2 || mine.MaxIdleConns != theirs.MaxIdleConns ||
		mine.IdleConnTimeout != theirs.IdleConnTimeout || mine.TLSHandshakeTimeout != theirs.TLSHandshakeTimeout || mine.ExpectContinueTimeout != theirs.ExpectContinueTimeout {
		t.Errorf("the settings are %+v: want those of net/http", mine)
	}
}

// TestTransportOfTheProgram carries all requests, with the header and the token.
func TestTransportOfTheProgram(t *testing.T) {
	var asked []string
	s, err := New("http://gateway.test/", Options{
		Token:  func(context.Context) (string, error) { return "t", nil },
		Header: http.Header{"X-Of": {"me"}},
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.Path+" "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Of"))
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"watches":[]}`)), Request: r}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Watches(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/v1/watches Bearer t me"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if _, err := New("https://gateway.test/", Options{TLS: &tls.Config{MinVersion: tls.VersionTLS13}, Transport: http.DefaultTransport}); err == nil {
		t.Error("TLS beside a transport is ignored")
	}
}

func TestClientEscapesKeysAndKeepsItsPath(t *testing.T) {
	s, err := New("https://example.com/gw%2Fx/", Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := s.url(nil, "v1", "watches", "w", "resources", "a/b c?d#e%2F/../é\x00")
	const want = "https://example.com/gw%2Fx/v1/watches/w/resources/a%2Fb%20c%3Fd%23e%252F%2F..%2F%C3%A9%00"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestGetAsksForAnyKey(t *testing.T) {
	var asked []string
	const line = `{"key":"k","revision":"18446744073709551615","value":{"n": 9007199254740993, "s": "<\n>"}}`
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI)
		fmt.Fprintln(w, line)
	})
	defer stop()
	for _, key := range []string{"a/b", "\xff", ".."} {
		if got, err := s.Get(t.Context(), "w", key, View{}); err != nil || string(got) != line {
			t.Errorf("%q: got %s, %v", key, got, err)
		}
	}
	want := []string{"/v1/watches/w/resources/a%2Fb", "/v1/watches/w/resources/%2Fw==?key_encoding=base64", "/v1/watches/w/resources/Li4=?key_encoding=base64"}
	if fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestSnapshotReadsEveryPageAndStartsOverWhenItsRevisionIsGone(t *testing.T) {
	requests := 0
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		token := r.URL.Query().Get("page_token")
		if r.URL.Query().Get("prefix") != "p/" {
			t.Errorf("prefix %q", r.URL.Query().Get("prefix"))
		}
		switch {
		case token == "":
			fmt.Fprint(w, `{"resources":[{"key":"a","revision":"1","value":1}],"next_page_token":"t"}`)
		case requests == 2:
			refuses(http.StatusGone)(w, r)
		default:
			fmt.Fprint(w, `{"resources":[{"key":"b","revision":"2","value":2}]}`)
		}
	})
	defer stop()
	all, err := s.Snapshot(t.Context(), "w", View{Prefix: "p/"})
	if text, _ := json.Marshal(all.Resources); err != nil || requests != 4 ||
		string(text) != `[{"key":"a","revision":"1","value":1},{"key":"b","revision":"2","value":2}]` {
		t.Errorf("got %s, %v after %d requests", text, err, requests)
	}
}

// A resource on one line is unchanged; an indented one becomes one line again.
func TestSnapshotHasResourcesOnOneLine(t *testing.T) {
	s, stop := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"watch":"w","revision":"7","resources":[{"key":"a","value":{"n": 1}}, {`+"\n"+`"key": "b", "value": "<  >" }]}`)
	})
	defer stop()
	all, err := s.Snapshot(t.Context(), "w", View{})
	want := []string{`{"key":"a","value":{"n": 1}}`, `{"key":"b","value":"<  >"}`}
	if err != nil || fmt.Sprintf("%s", all.Resources) != fmt.Sprint(want) || all.Revision != "7" || all.Watch != "w" {
		t.Errorf("got %s at %s of %s, %v, want %s", all.Resources, all.Revision, all.Watch, err, want)
	}
}

func TestSnapshotGivesUpWhenItsRevisionIsAlwaysGone(t *testing.T) {
	requests := 0
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		refuses(http.StatusGone)(w, r)
	})
	defer stop()
	_, err := s.Snapshot(t.Context(), "w", View{})
	var p *Problem
	if !errors.As(err, &p) || p.Status != http.StatusGone || requests != listAttempts {
		t.Errorf("got %v after %d requests", err, requests)
	}
}

func TestWatches(t *testing.T) {
	s, stop := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"watches":[{"name":"notes","source":"local","state":"in_sync","count":3,"more":1}]}`)
	})
	defer stop()
	all, err := s.Watches(t.Context())
	if err != nil || len(all) != 1 || all[0] != (Watch{Name: "notes", Source: "local", State: "in_sync", Count: 3}) {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestWatchesDocumentKeepsWhatIsUnknownHere(t *testing.T) {
	s, stop := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"watches":[{"name":"notes",`+"\n"+`"more":1.50}]}`)
	})
	defer stop()
	if got, err := s.WatchesDocument(t.Context()); err != nil || string(got) != `{"watches":[{"name":"notes","more":1.50}]}` {
		t.Errorf("got %s, %v", got, err)
	}
}

// A key in base64 cannot be typed, and could be taken for another one.
func TestKeys(t *testing.T) {
	s, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI != "/v1/watches/w/resources?prefix=a%26" {
			t.Errorf("asked for %s", r.RequestURI)
		}
		fmt.Fprint(w, `{"resources":[{"key":"a&/1"},{"key":"/w==","key_encoding":"base64"},{"key":"a&2"}]}`)
	})
	defer stop()
	if got, err := s.Keys(t.Context(), "w", "a&"); err != nil || fmt.Sprint(got) != "[a&/1 a&2]" {
		t.Errorf("got %v, %v", got, err)
	}
}

// The header is sent with every request to the server, streams included, and with none to
// another one. It replaces nothing that a request sets itself.
func TestHeaderStaysAtItsOrigin(t *testing.T) {
	asked := map[string][]string{}
	note := func(of string, r *http.Request) {
		asked[of] = append(asked[of], r.Header.Get("User-Agent")+" "+r.Header.Get("X-Key")+" "+r.Header.Get("Accept"))
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note("other", r)
		write(w, hello+allGone)
	}))
	defer other.Close()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note("gateway", r)
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer gateway.Close()
	s, err := New(gateway.URL, Options{Header: http.Header{"User-Agent": {"test/1"}, "X-Key": {"secret"}, "Accept": {"text/html"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, err := range s.Watch(t.Context(), "w", UntilEndOfSnapshot()) {
		if err != nil {
			t.Error(err)
		}
	}
	if want := "map[gateway:[test/1 secret */*] other:[Go-http-client/1.1  */*]]"; fmt.Sprint(asked) != want {
		t.Errorf("got  %v\nwant %s", asked, want)
	}
}

// A client certificate is a credential too: a redirect does not lead it elsewhere.
func TestClientCertificateStaysAtItsOrigin(t *testing.T) {
	gateway := httptest.NewUnstartedServer(http.RedirectHandler("https://127.0.0.1:1/", http.StatusTemporaryRedirect))
	gateway.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	gateway.StartTLS()
	defer gateway.Close()
	roots := x509.NewCertPool()
	roots.AddCert(gateway.Certificate())
	s, err := New(gateway.URL, Options{TLS: &tls.Config{RootCAs: roots, Certificates: gateway.TLS.Certificates}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Watches(t.Context()); err == nil || !strings.Contains(err.Error(), "must not get the credential") {
		t.Errorf("got %v", err)
	}
}
