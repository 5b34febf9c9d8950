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
	State  string `json:"state"`
}

// Watches returns the watches of the server.
func (s *Server) Watches(ctx context.Context) ([]Watch, error) {
	var answer struct {
		Watches []Watch `json:"watches"`
	}
	err := s.get(ctx, &answer, s.url(nil, "v1", "watches"))
	return answer.Watches, err
}

// Line returns one resource of a view as received, as JSON on one line. The key may
// be any bytes.
func (s *Server) Line(ctx context.Context, watch, key string, v View) (json.RawMessage, error) {
	query := url.Values{}
	v.AddTo(query, "")
	if !utf8.ValidString(key) {
		query.Set("key_encoding", "base64")
		key = base64.StdEncoding.EncodeToString([]byte(key))
	}
	var line json.RawMessage
	err := s.get(ctx, &line, s.url(query, "v1", "watches", watch, "resources", key))
	return oneLine(line), err
}

// oneLine undoes indentation that was added on the way.
func oneLine(text json.RawMessage) json.RawMessage {
	if bytes.IndexByte(text, '\n') < 0 {
		return text
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, text) // it was read, so it is JSON
	return compact.Bytes()
}

// listAttempts is how often a list is attempted if its revision is gone
// before the last page.
const listAttempts = 3

// pageSize is the most that a gateway accepts: larger pages mean fewer
// requests, and an earlier last one, whose revision is less likely to be gone.
const pageSize = "10000"

// Resources returns the resources of a view, all as they were at one revision.
func (s *Server) Resources(ctx context.Context, watch string, v View) ([]Resource, error) {
	return list[Resource](ctx, s, watch, v)
}

// Lines is Resources in the form received, each the JSON of a resource on one line.
func (s *Server) Lines(ctx context.Context, watch string, v View) ([]json.RawMessage, error) {
	lines, err := list[json.RawMessage](ctx, s, watch, v)
	for i := range lines {
		lines[i] = oneLine(lines[i])
	}
	return lines, err
}

func list[T any](ctx context.Context, s *Server, watch string, v View) ([]T, error) {
	for attempt := 1; ; attempt++ {
		all, err := pages[T](ctx, s, watch, v)
		var p *Problem
		if attempt < listAttempts && errors.As(err, &p) && p.Status == http.StatusGone {
			continue
		}
		return all, err
	}
}

func pages[T any](ctx context.Context, s *Server, watch string, v View) ([]T, error) {
	query := url.Values{"page_size": {pageSize}}
	v.AddTo(query, "")
	var all []T
	for {
		var page struct {
			Resources     []T    `json:"resources"`
			NextPageToken string `json:"next_page_token"`
		}
		if err := s.get(ctx, &page, s.url(query, "v1", "watches", watch, "resources")); err != nil {
			return nil, err
		}
		all = append(all, page.Resources...)
		if page.NextPageToken == "" {
			return all, nil
		}
		query.Set("page_token", page.NextPageToken)
	}
}
