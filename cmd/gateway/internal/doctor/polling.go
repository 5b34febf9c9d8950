package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/watchtide/watchtide/client"
)

// polling is how long answers without a byte lasted.
type polling struct {
	longest time.Duration // that was answered
	cut     time.Duration // 0: none was cut off
	how     string        // it was cut off
	err     error         // it could not be examined
}

// maxPolls is how many long polls are made: something that answers each at once is not asked
// for ever.
const maxPolls = 16

var errAtOnce = errors.New("long polls are answered too soon")

// poll makes long polls for a time, which have no heartbeats. It is called in a goroutine of
// its own.
func (e *Examination) poll(ctx context.Context, wait time.Duration) (out polling) {
	position, err := e.changes(ctx, url.Values{"prefix": {nothing}}, answerWithin)
	end := time.Now().Add(wait)
	for n := 0; err == nil; n++ {
		if n == maxPolls {
			err = errAtOnce
			break
		}
		began := time.Now()
		rest := end.Sub(began).Truncate(time.Millisecond)
		if rest <= 0 {
			return out
		}
		query := url.Values{"prefix": {nothing}, "after": {position}, "wait": {rest.String()}}
		position, err = e.changes(ctx, query, rest+answerWithin)
		took := time.Since(began)
		if err == nil {
			out.longest = max(out.longest, took)
			continue
		}
		var refused *client.Problem
		if errors.As(err, &refused) && refused.Detail != "" {
			break // by the gateway
		}
		out.cut, out.how = took, because(err)
		return out
	}
	out.err = err
	return out
}

// changes makes one long poll.
func (e *Examination) changes(ctx context.Context, query url.Values, within time.Duration) (position string, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	a, err := e.do(ctx, request{path: e.ofWatch("changes"), query: query, fresh: true})
	if err != nil {
		return "", err
	}
	defer a.Close()
	if a.StatusCode != http.StatusOK {
		return "", client.ReadProblem(a.Response)
	}
	var answer struct {
		Position string `json:"position"`
	}
	if err := json.NewDecoder(io.LimitReader(a.Body, maxStream)).Decode(&answer); err != nil {
		return "", fmt.Errorf("the answer to a long poll cannot be read: %w", err)
	}
	return answer.Position, nil
}
