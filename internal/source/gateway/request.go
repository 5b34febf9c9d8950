package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/source/adapter"
)

// request makes one request for its members, and hands them their events.
func (c *connection) request(ctx context.Context, members []*member) client.Ending {
	config := &c.upstream.config
	header, err := config.header()
	if err != nil {
		return client.Ending{Err: err}
	}
	byWatch := make(map[string]*member, len(members))
	for _, m := range members {
		byWatch[m.source.watch] = m
	}
	rest, beside := newUnfinished(members, config.MaxEventBytes), newBeside(ctx)
	s := &client.Stream{
		URL: config.eventsURL(members, c.unknown), Client: c.upstream.client, Header: header,
		LastEventID: positions(members, beside), MaxEventBytes: rest.limit, Held: rest.hold, StallAfter: config.StallAfter,
		Handle: func(e client.Event) error {
			if m := byWatch[e.Watch]; m != nil {
				m.receive(e)
			}
			return nil
		},
	}
	end := s.Run(ctx)
	beside.end()
	rest.end(end.Err)
	return end
}

// positions returns where a request resumes: an id as the upstream sends it.
func positions(members []*member, beside *beside) string {
	var id []byte
	for _, m := range members {
		p, ok := m.begins(beside)
		if !ok {
			continue
		}
		if len(id) > 0 {
			id = append(id, ',')
		}
		id = p.Append(id)
	}
	return string(id)
}

// eventsURL is the URL of a stream of the watches: its snapshots begin with deletes, and it resumes by digest, except
// where the parameters of that are unknown.
func (c *Config) eventsURL(members []*member, unknown []string) string {
	sources := make([]*Source, len(members))
	for i, m := range members {
		sources[i] = m.source
	}
	query := queryOf(sources...)
	if !slices.Contains(unknown, deletesParameter) {
		query.Set(deletesParameter, "1")
	}
	if !slices.Contains(unknown, resumeParameter) && !slices.ContainsFunc(members, func(m *member) bool { return !m.verifies() }) {
		query.Set(resumeParameter, "digest")
	}
	return strings.TrimRight(c.URL, "/") + "/v1/events?" + query.Encode()
}

// Parameters that an older upstream does not know, or one whose digests are turned off.
const (
	deletesParameter = "deletes" // begins snapshots with deletes
	resumeParameter  = "resume"  // asks for a digest in place of a reset
	digestParameter  = "digest"  // is not sent; a gateway with stream.digest off may name it in place of resume
)

// queryOf is the query of a stream of the sources.
func queryOf(sources ...*Source) url.Values {
	query := url.Values{}
	for _, s := range sources {
		query.Add("watch", s.watch)
		s.view.AddTo(query, s.watch)
	}
	return query
}

// anyType requests a stream as text/event-stream would, since that is a
// gateway's default. But a refusal is then a problem, which names the watch,
// and not a goodbye as for an EventSource, which does not.
const anyType = "*/*"

// header returns the headers of a request. The token and files are read again each time: they
// may rotate.
func (c *Config) header() (map[string]string, error) {
	const line = "one line of text"
	header, err := c.Headers.Read(validHeaderValue, line)
	if err != nil {
		return nil, err
	}
	header["Accept"] = anyType
	if c.TokenFile == "" {
		return header, nil
	}
	token, err := adapter.ReadSecret(c.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	if !validHeaderValue(token) {
		return nil, fmt.Errorf("token file %s: want %s", c.TokenFile, line)
	}
	header["Authorization"] = "Bearer " + token
	return header, nil
}

// patience is how long the upstream wants to wait for the next request. The
// retry value applies from the second attempt on: a stream that was cut off can
// often be resumed immediately. u.mu is held.
func (u *Upstream) patience(end client.Ending) time.Duration {
	var refused *client.Problem
	switch {
	case end.Goodbye != nil && end.Goodbye.Reason == client.GoodbyeMaxAge:
		return 0
	case end.Goodbye != nil:
		return time.Duration(min(end.Goodbye.RetryMS, maxRetryWait.Milliseconds())) * time.Millisecond
	case errors.As(end.Err, &refused) && refused.RetryAfter > 0:
		return min(refused.RetryAfter, maxRetryWait)
	case end.Greeted:
		return 0
	}
	return min(u.retry, maxRetryWait)
}
