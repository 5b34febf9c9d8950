package client

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	soon := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for header, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "-5": 0, "x": 0, "Fri, 01 Jan 2010 00:00:00 GMT": 0, soon: time.Hour,
	} {
		if got := retryAfter(header); got > want || got < want-2*time.Second {
			t.Errorf("%q: got %v, want %v", header, got, want)
		}
	}
}

func TestProblemReportsTheServersText(t *testing.T) {
	for want, p := range map[string]Problem{
		"404 Not Found: there is none": {Status: 404, Title: "Not Found", Detail: "there is none"},
		"502 Bad Gateway":              {Status: 502},
	} {
		if p.Error() != want {
			t.Errorf("got %s, want %s", p.Error(), want)
		}
	}
	for status, final := range map[int]bool{400: true, 401: true, 404: true, 406: true, 408: false, 410: true, 414: true, 425: false, 429: false, 500: false, 503: false} {
		if p := (&Problem{Status: status}); p.Final() != final {
			t.Errorf("%d: final %v", status, p.Final())
		}
	}
}
