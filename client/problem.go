package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxProblemBytes is how much of a refusal is read.
const maxProblemBytes = 64 << 10

// Problem is a refusal by the server.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	// Watch is the one that the problem is about; "": none, or several.
	Watch string `json:"watch"`
	// Parameter is the name of the parameter that is wrong; "": none.
	Parameter string `json:"parameter"`
	// Offset is where in the parameter the mistake begins, in bytes, if Column is not 0;
	// Line and Column say the same in code points, both from 1.
	Offset int `json:"offset"`
	Line   int `json:"line"`
	Column int `json:"column"`
	// RetryAfter is when the request may be retried; 0: unknown.
	RetryAfter time.Duration `json:"-"`
}

// Error returns for instance: 404 Not Found: there is no watch "x".
func (p *Problem) Error() string {
	title := p.Title
	if title == "" {
		title = http.StatusText(p.Status)
	}
	if p.Detail == "" {
		return fmt.Sprintf("%d %s", p.Status, title)
	}
	return fmt.Sprintf("%d %s: %s", p.Status, title, p.Detail)
}

// Final reports whether a retry is useless: the request is wrong, not the
// moment.
func (p *Problem) Final() bool {
	switch p.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return p.Status < 500
}

// retryAfter reads the header: seconds, or a date.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, time.Until(date))
	}
	return 0
}

// ReadProblem converts a refusal to an error (RFC 9457, if the server supports it).
func ReadProblem(response *http.Response) *Problem {
	p := &Problem{}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxProblemBytes))
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/problem+json") {
		_ = json.Unmarshal(body, p) // if it cannot be read, the status is enough
	}
	p.Status = response.StatusCode
	p.RetryAfter = retryAfter(response.Header.Get("Retry-After"))
	return p
}
