package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWriteProblem(t *testing.T) {
	p := newProblem(503, "watch %q: try later", "a").onWatch("a").onKey("k\xff")
	p.Parameter, p.retryAfter, p.allow = "x", 1500*time.Millisecond, "GET"
	p.extra = []byte(`{"draining":true}`)
	w := httptest.NewRecorder()
	w.Header().Set("ETag", `"1"`)
	writeProblem(w, p)
	const want = `{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"watch \"a\": try later",` +
		`"watch":"a","key":"a/8=","key_encoding":"base64","parameter":"x","draining":true}` + "\n"
	if w.Code != 503 || w.Body.String() != want {
		t.Errorf("%d %s\nwant %s", w.Code, w.Body, want)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/problem+json", "Cache-Control": "no-store", "Content-Length": fmt.Sprint(len(want)),
		"Retry-After": "2", "Allow": "GET", "ETag": "",
	} {
		if got := w.Header().Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
}

// TestProblemOf checks that every error has its status, in HTTP and in gRPC.
func TestProblemOf(t *testing.T) {
	for name, test := range map[string]struct {
		err       error
		status    int
		code      codes.Code
		parameter string
	}{
		"problem":       {newProblem(404, "x"), 404, codes.NotFound, ""},
		"invalid":       {&stream.InvalidError{What: "page token", Got: "x", Want: "y"}, 400, codes.InvalidArgument, "page_token"},
		"conflict":      {&stream.ConflictError{Key: "k", Want: 1, Got: 2}, 412, codes.Aborted, "If-Match"},
		"must not be":   {&stream.ConflictError{Key: "k", Got: 2}, 412, codes.Aborted, "If-None-Match"},
		"too large":     {&stream.TooLargeError{What: "value", Size: 2, Limit: 1}, 413, codes.ResourceExhausted, ""},
		"page gone":     {log.ErrPageGone, 410, codes.OutOfRange, "page_token"},
		"canceled":      {context.Canceled, statusClientClosedRequest, codes.Canceled, ""},
		"deadline":      {context.DeadlineExceeded, 504, codes.DeadlineExceeded, ""},
		"status":        {status.Error(codes.InvalidArgument, "x"), 400, codes.InvalidArgument, ""},
		"unavailable":   {status.Error(codes.Unavailable, "x"), 503, codes.Unavailable, ""},
		"unknown":       {status.Error(codes.Unknown, "secret"), 500, codes.Internal, ""},
		"anything else": {errors.New("secret"), 500, codes.Internal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err)} {
				p := problemOf(err)
				if p.Status != test.status || p.Parameter != test.parameter || p.Title == "" || p.Detail == "secret" {
					t.Errorf("%+v", p)
				}
				if got := p.GRPCStatus().Code(); got != test.code {
					t.Errorf("code %s, want %s", got, test.code)
				}
			}
		})
	}
}

// TestProblemsAreUTF8 checks that the answer is JSON, whatever the client sent.
func TestProblemsAreUTF8(t *testing.T) {
	p := badParameter("\xff", "parameter %s", "\xff\x00").onWatch("\xff").onKey("\xff")
	w := httptest.NewRecorder()
	writeProblem(w, p)
	var back problem
	if err := json.Unmarshal(w.Body.Bytes(), &back); err != nil || back.Parameter != "\uFFFD" || back.KeyEncoding != "base64" {
		t.Errorf("%v in %s", err, w.Body)
	}
	if p.GRPCStatus().Message() != "parameter \uFFFD\x00" {
		t.Errorf("%q", p.GRPCStatus().Message())
	}
}

func TestProblemTitles(t *testing.T) {
	for code := range codeOf {
		if p := newProblem(code, "x"); p.Title == "" {
			t.Errorf("%d has no title", code)
		}
	}
	if p := newProblem(http.StatusTeapot, "x"); p.GRPCStatus().Code() != codes.InvalidArgument {
		t.Errorf("a status without a code of its own: %s", p.GRPCStatus().Code())
	}
}

// TestProblemsSayWhere checks that the problem names what the path names.
func TestProblemsSayWhere(t *testing.T) {
	r := newAPIRig(t, Config{})
	for _, test := range []struct{ method, path, header, watch, key string }{
		{"GET", "/v1/watches/notes?x=1", "", "notes", ""},
		{"GET", "/v1/watches/notes/resources?page_size=x", "", "notes", ""},
		{"GET", "/v1/watches/notes/resources?page_token=x", "", "notes", ""},
		{"GET", "/v1/watches/notes/resources/a?x=1", "", "notes", ""},
		{"GET", "/v1/watches/notes/resources/a", "", "notes", "a"},
		{"PUT", "/v1/watches/notes/resources/a%2Fb", "If-Match: x", "notes", "a/b"},
		{"PUT", "/v1/watches/notes/resources/%FF", `If-Match: "7"`, "notes", "/w=="},
		{"DELETE", "/v1/watches/notes/resources/a", "If-None-Match: *", "notes", "a"},
		{"DELETE", "/v1/watches/hosts/resources/a", "", "hosts", ""},
		{"GET", "/v1/watches/notes/changes?wait=x", "", "notes", ""},
		{"GET", "/v1/watches/notes/events?until=x", "", "notes", ""},
		{"GET", "/v1/watches/notes/events", "Accept: text/html", "notes", ""},
		{"GET", "/v1/watches?x=1", "", "", ""},
		{"GET", "/v1/events?watch=notes&until=x", "", "", ""},
	} {
		var headers []string
		if test.header != "" {
			headers = append(headers, test.header)
		}
		got := r.send(test.method, test.path, bodyFor(test.method, "1"), headers...)
		var p problem
		if err := json.Unmarshal([]byte(got.text), &p); err != nil || p.Watch != test.watch || p.Key != test.key {
			t.Errorf("%s %s: %s (%v), want watch %q and key %q", test.method, test.path, got.text, err, test.watch, test.key)
		}
	}
}
