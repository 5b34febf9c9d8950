package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"unicode/utf8"
)

// Watch is one watch of a server.
type Watch struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	State  State  `json:"state"`
	// Since is when the state began, in RFC 3339.
	Since string `json:"since"`
	// Reason says why the watch is in the state; "": there is nothing to say.
	Reason string `json:"reason"`
	// Revision is the place of the watch in the upstream's own order.
	Revision string `json:"revision"`
	// Count is how many resources there are, Subscribers how many clients follow them. Both
	// are 0 if Partial.
	Count       int `json:"count"`
	Subscribers int `json:"subscribers"`
	// Writable reports whether some write could be allowed.
	Writable bool `json:"writable"`
	// Partial reports that the client may see only a part of the watch.
	Partial bool `json:"partial"`
}

// Watches returns the watches of the server.
func (c *Client) Watches(ctx context.Context) ([]Watch, error) {
	var answer struct {
		Watches []Watch `json:"watches"`
	}
	err := c.get(ctx, &answer, anyLength, c.url(nil, "v1", "watches"))
	return answer.Watches, err
}

// WatchesDocument returns the watches of the server as received, with all that it says of
// them: an object with the member watches.
func (c *Client) WatchesDocument(ctx context.Context) (json.RawMessage, error) {
	var document json.RawMessage
	err := c.get(ctx, &document, anyLength, c.url(nil, "v1", "watches"))
	return oneLine(document), err
}

// Keys returns keys of a watch that begin with a prefix, at most some thousand of them, and none
// that is not UTF-8.
func (c *Client) Keys(ctx context.Context, watch, prefix string) ([]string, error) {
	query := url.Values{}
	View{Prefix: prefix}.AddTo(query, "")
	var page struct {
		Resources []struct {
			Key         string `json:"key"`
			KeyEncoding string `json:"key_encoding"`
		} `json:"resources"`
	}
	if err := c.get(ctx, &page, anyLength, c.url(query, "v1", "watches", watch, "resources")); err != nil {
		return nil, err
	}
	var keys []string
	for _, r := range page.Resources {
		if r.KeyEncoding == "" {
			keys = append(keys, r.Key)
		}
	}
	return keys, nil
}

// Get returns one resource of a view as received, as JSON on one line. The key may
// be any bytes.
func (c *Client) Get(ctx context.Context, watch, key string, v View) (json.RawMessage, error) {
	query := url.Values{}
	v.AddTo(query, "")
	var line json.RawMessage
	err := c.get(ctx, &line, anyLength, c.resource(query, watch, key))
	return oneLine(line), err
}

// resource returns the URL of a resource. A key that is not UTF-8, or that a path loses, is
// sent in base64.
func (c *Client) resource(query url.Values, watch, key string) string {
	if key == "." || key == ".." || !utf8.ValidString(key) {
		query.Set("key_encoding", "base64")
		key = base64.StdEncoding.EncodeToString([]byte(key))
	}
	return c.url(query, "v1", "watches", watch, "resources", key)
}

// oneLine undoes indentation that was added on the way. What is not JSON is left as it is.
func oneLine(text []byte) []byte {
	if !bytes.ContainsAny(text, "\r\n") {
		return text
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) != nil {
		return text
	}
	return compact.Bytes()
}

// listAttempts is how often a list is attempted if its revision is gone
// before the last page.
const listAttempts = 3

// pageSize is the most that a gateway accepts: larger pages mean fewer
// requests, and an earlier last one, whose revision is less likely to be gone.
const pageSize = "10000"

// Snapshot is the resources of a view at one revision. They have the form received, each as JSON
// on one line.
type Snapshot struct {
	Watch     string            `json:"watch"`
	Position  string            `json:"position"`
	Revision  string            `json:"revision"`
	Resources []json.RawMessage `json:"resources"`
	// Total is the number of resources that they are a window of, if they are: then they are sorted.
	Total int `json:"total,omitempty"`
	// Before is how many of them come before the window. Next is the View.After of what comes next; empty:
	// nothing does.
	Before int    `json:"before,omitempty"`
	Next   string `json:"next,omitempty"`
}

// Snapshot returns the resources of a view, all as they were at one revision.
func (c *Client) Snapshot(ctx context.Context, watch string, v View) (Snapshot, error) {
	query := url.Values{}
	if v.Order == "" { // a window has no pages
		query.Set("page_size", pageSize)
	}
	v.AddTo(query, "")
	return c.whole(ctx, query, watch, "resources")
}

// whole returns all pages of a list of a watch, as they were at one revision.
func (c *Client) whole(ctx context.Context, query url.Values, watch, list string) (Snapshot, error) {
	for attempt := 1; ; attempt++ {
		query.Del("page_token")
		all, err := c.pages(ctx, query, watch, list)
		var p *Problem
		if attempt < listAttempts && errors.As(err, &p) && p.Status == http.StatusGone {
			continue
		}
		return all, err
	}
}

func (c *Client) pages(ctx context.Context, query url.Values, watch, list string) (Snapshot, error) {
	all := Snapshot{Resources: []json.RawMessage{}}
	for {
		var page struct {
			Snapshot
			NextPageToken string `json:"next_page_token"`
		}
		if err := c.get(ctx, &page, anyLength, c.url(query, "v1", "watches", watch, list)); err != nil {
			return Snapshot{}, err
		}
		for i, line := range page.Resources {
			page.Resources[i] = oneLine(line)
		}
		all.Watch, all.Position, all.Revision, all.Total = page.Watch, page.Position, page.Revision, page.Total
		all.Before, all.Next = page.Before, page.Next
		all.Resources = append(all.Resources, page.Resources...)
		if page.NextPageToken == "" {
			return all, nil
		}
		query.Set("page_token", page.NextPageToken)
	}
}
