package histories

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// answer is the answer to a request, as it arrives.
type answer struct {
	cancel context.CancelFunc

	mu     sync.Mutex // guards the following fields
	status int        // 0: none came yet
	lines  []line
	ended  error // io.EOF: it is complete; nil: it goes on
}

// line is a line of an answer.
type line struct {
	text []byte
	at   time.Time
}

// ask sends a request.
func ask(url string, header map[string]string) *answer { return send(http.MethodGet, url, header) }

func send(method, url string, header map[string]string) *answer {
	ctx, cancel := context.WithCancel(context.Background())
	a := &answer{cancel: cancel}
	go a.read(ctx, method, url, header)
	return a
}

func (a *answer) read(ctx context.Context, method, url string, header map[string]string) {
	err := a.readAll(ctx, method, url, header)
	a.cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = err
}

func (a *answer) readAll(ctx context.Context, method, url string, header map[string]string) error {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	// A transport of its own: one that all histories share remembers each host that a request was
	// cancelled for before it had a connection, and with it the history.
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	a.mu.Lock()
	a.status = res.StatusCode
	a.mu.Unlock()
	for r := bufio.NewReader(res.Body); ; {
		text, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if len(text) > 1 {
			a.mu.Lock()
			a.lines = append(a.lines, line{text, time.Now()})
			a.mu.Unlock()
		}
		if err != nil {
			return err
		}
	}
}

// over reports whether the answer has ended.
func (a *answer) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended != nil
}

// take returns the lines that have come since the last take, the status of the answer, and how it
// has ended.
func (a *answer) take() (lines []line, status int, ended error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	lines, a.lines = a.lines, nil
	return lines, a.status, a.ended
}
