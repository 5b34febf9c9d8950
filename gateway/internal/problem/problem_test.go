package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWriteProblem(t *testing.T) {
	p := New(503, "watch %q: try later", "a").OnWatch("a").OnKey("k\xff")
	p.Parameter, p.RetryAfter, p.Allow = "x", 1500*time.Millisecond, "GET"
	p.Extra = []byte(`{"draining":true}`)
	w := httptest.NewRecorder()
	w.Header().Set("ETag", `"1"`)
	Write(w, p)
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
		"problem":         {New(404, "x"), 404, codes.NotFound, ""},
		"invalid":         {&stream.InvalidError{What: "page token", Got: "x", Want: "y"}, 400, codes.InvalidArgument, "page_token"},
		"conflict":        {&stream.ConflictError{Key: "k", Want: 1, Got: 2}, 412, codes.Aborted, "If-Match"},
		"must not be":     {&stream.ConflictError{Key: "k", Got: 2}, 412, codes.Aborted, "If-None-Match"},
		"too large":       {&stream.TooLargeError{What: "value", Size: 2, Limit: 1}, 413, codes.ResourceExhausted, ""},
		"takes no writes": {&stream.UnavailableError{What: "it takes no writes"}, 503, codes.Unavailable, ""},
		"rejected":        {&stream.RejectedError{Key: "k", Reason: "spec is missing"}, 422, codes.InvalidArgument, ""},
		"no answer":       {&stream.OutcomeUnknownError{Key: "k"}, 504, codes.DeadlineExceeded, ""},
		"page gone":       {log.ErrPageGone, 410, codes.OutOfRange, "page_token"},
		"canceled":        {context.Canceled, statusClientClosedRequest, codes.Canceled, ""},
		"deadline":        {context.DeadlineExceeded, 504, codes.DeadlineExceeded, ""},
		"status":          {status.Error(codes.InvalidArgument, "x"), 400, codes.InvalidArgument, ""},
		"unavailable":     {status.Error(codes.Unavailable, "x"), 503, codes.Unavailable, ""},
		"unknown":         {status.Error(codes.Unknown, "secret"), 500, codes.Internal, ""},
		"anything else":   {errors.New("secret"), 500, codes.Internal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err)} {
				p := Of(err)
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
	p := BadParameter("\xff", "parameter %s", "\xff\x00").OnWatch("\xff").OnKey("\xff")
	w := httptest.NewRecorder()
	Write(w, p)
	var back Problem
	if err := json.Unmarshal(w.Body.Bytes(), &back); err != nil || back.Parameter != "\uFFFD" || back.KeyEncoding != "base64" {
		t.Errorf("%v in %s", err, w.Body)
	}
	if p.GRPCStatus().Message() != "parameter \uFFFD\x00" {
		t.Errorf("%q", p.GRPCStatus().Message())
	}
}

func TestProblemTitles(t *testing.T) {
	for code := range codeOf {
		if p := New(code, "x"); p.Title == "" {
			t.Errorf("%d has no title", code)
		}
	}
	if p := New(http.StatusTeapot, "x"); p.GRPCStatus().Code() != codes.InvalidArgument {
		t.Errorf("a status without a code of its own: %s", p.GRPCStatus().Code())
	}
}
