package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"unicode/utf8"
)

// Resource is one member of a watch as it stands in JSON.
type Resource struct {
	Key         string          `json:"key"`
	Revision    string          `json:"revision"`
	Value       json.RawMessage `json:"value"`
	Encoding    string          `json:"encoding,omitempty"`
	KeyEncoding string          `json:"key_encoding,omitempty"`
}

// ID tells resources of one watch apart: the key, unless it stands in base64,
// which could be the key of another one.
func (r Resource) ID() string {
	if r.KeyEncoding == "" {
		return r.Key
	}
	return r.KeyEncoding + ":\x00" + r.Key
}

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

// Resource returns one resource. The key may be any bytes.
func (s *Server) Resource(ctx context.Context, watch, key string) (Resource, error) {
	query := url.Values{}
	if !utf8.ValidString(key) {
		query.Set("key_encoding", "base64")
		key = base64.StdEncoding.EncodeToString([]byte(key))
	}
	var r Resource
	err := s.get(ctx, &r, s.url(query, "v1", "watches", watch, "resources", key))
	return r, err
}

// listAttempts is how often a list is begun anew because its revision was gone
// before the last page.
const listAttempts = 3

// Resources returns the resources whose keys begin with prefix, all as they
// were at one revision.
func (s *Server) Resources(ctx context.Context, watch, prefix string) ([]Resource, error) {
	for attempt := 1; ; attempt++ {
		all, err := s.pages(ctx, watch, prefix)
		var p *Problem
		if attempt < listAttempts && errors.As(err, &p) && p.Status == http.StatusGone {
			continue
		}
		return all, err
	}
}

func (s *Server) pages(ctx context.Context, watch, prefix string) ([]Resource, error) {
	query := url.Values{}
	if prefix != "" {
		query.Set("prefix", prefix)
	}
	var all []Resource
	for {
		var page struct {
			Resources     []Resource `json:"resources"`
			NextPageToken string     `json:"next_page_token"`
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
