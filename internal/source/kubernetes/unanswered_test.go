package kubernetes

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// TestWriterWithoutAnswer: a server that answers a write with nothing, or with an error after which it may
// have been made, leaves the outcome open, and the write is made once.
func TestWriterWithoutAnswer(t *testing.T) {
	for name, answer := range map[string]struct {
		with http.HandlerFunc
		want any
	}{
		"nothing":         {stalls(), new(*stream.OutcomeUnknownError)},
		"an end":          {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, new(*stream.OutcomeUnknownError)},
		"a gateway error": {replies(502, "secret-host"), new(*stream.OutcomeUnknownError)},
		"a time-out":      {replies(504, `{"kind":"Status","message":"late","reason":"Timeout","code":504}`), new(*stream.OutcomeUnknownError)},
		"no object":       {replies(200, `[]`), new(*stream.OutcomeUnknownError)},
		"too many":        {replies(429, `{"kind":"Status","message":"secret-host","reason":"TooManyRequests","code":429}`), new(*stream.UnavailableError)},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://secret-host/", http.StatusTemporaryRedirect)
		}, new(*stream.OutcomeUnknownError)},
		"a refusal": {replies(422, `{"kind":"Status","message":"spec.n: want 1","reason":"Invalid","code":422}`), new(*stream.RejectedError)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fake) {
				writes := 0
				f.list = func(w http.ResponseWriter, r *http.Request) {
					writes++
					_, _ = io.Copy(io.Discard, r.Body) // what HTTP/2 cannot send again
					answer.with(w, r)
				}
				w, err := NewWriter(f.source.config, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				began := time.Now()
				_, _, err = w.Put(f.t.Context(), stream.PutRequest{Key: "a", Value: []byte(widget("a", 5))})
				if !errors.As(err, answer.want) || strings.Contains(err.Error(), "secret-host") {
					t.Errorf("error %v, want %T", err, answer.want)
				}
				if writes != 1 || time.Since(began) > writeTimeout {
					t.Errorf("%d writes within %v", writes, time.Since(began))
				}
			})
		})
	}
}
