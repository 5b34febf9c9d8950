package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
)

// ErrConflict matches, with errors.Is, a *Problem with the status 412: the resource is not as
// the Condition of a write wants it.
var ErrConflict = errors.New("the resource has another revision")

// Condition says what must be so for a write to be made.
type Condition struct {
	// Revision is the one that the resource has; "": any.
	Revision string
	// Absent reports that there must be no such resource.
	Absent bool
}

func (c Condition) addTo(h http.Header) {
	if c.Revision != "" {
		h.Set("If-Match", `"`+c.Revision+`"`)
	}
	if c.Absent {
		h.Set("If-None-Match", "*")
	}
}

// Put writes a resource, whose key may be any bytes, and returns it as stored, as JSON on one
// line. The value is JSON.
func (c *Client) Put(ctx context.Context, watch, key string, value []byte, when Condition) (json.RawMessage, error) {
	var stored json.RawMessage
	err := c.write(ctx, http.MethodPut, c.resource(url.Values{}, watch, key), bytes.NewReader(value), when, &stored)
	return oneLine(stored), err
}

// Delete removes a resource, whose key may be any bytes. It reports whether there was one.
func (c *Client) Delete(ctx context.Context, watch, key string, when Condition) (bool, error) {
	var answer struct {
		Deleted bool `json:"deleted"`
	}
	err := c.write(ctx, http.MethodDelete, c.resource(url.Values{}, watch, key), nil, when, &answer)
	return answer.Deleted, err
}

func (c *Client) write(ctx context.Context, method, address string, body io.Reader, when Condition, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return err
	}
	when.addTo(request.Header)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return c.do(request, into, anyLength)
}
