package kubernetes

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/stream"
)

// page is the answer to a list.
type page struct {
	typeMeta
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// head returns the server's present revision, not that of its cache.
func (c *client) head(ctx context.Context) (uint64, error) {
	var p page
	if err := c.get(ctx, c.collection(), c.query("limit", "1"), &p); err != nil {
		return 0, c.explained(ctx, err)
	}
	return parseRevision(p.Metadata.ResourceVersion)
}

// list reads the collection in pages, all as of the revision that it returns. If
// the server compacts that revision before the last page, it is immediately read
// once more. begin is called before each reading.
func (c *client) list(ctx context.Context, begin func() error, upsert func(stream.Resource) error) (uint64, error) {
	revision, err := c.pages(ctx, strconv.Itoa(c.config.pageSize), begin, upsert)
	if expired(err) {
		revision, err = c.pages(ctx, "", begin, upsert)
	}
	return revision, c.explained(ctx, err)
}

// pages reads the collection in pages of a size; "": in one.
func (c *client) pages(ctx context.Context, limit string, begin func() error, upsert func(stream.Resource) error) (uint64, error) {
	if err := begin(); err != nil {
		return 0, err
	}
	for next := ""; ; {
		var p page
		if err := c.get(ctx, c.collection(), c.query("limit", limit, "continue", next), &p); err != nil {
			return 0, err
		}
		if err := p.each(upsert); err != nil {
			return 0, err
		}
		if next = p.Metadata.Continue; next == "" {
			return parseRevision(p.Metadata.ResourceVersion)
		}
	}
}

// each passes the objects of a page on.
func (p *page) each(upsert func(stream.Resource) error) error {
	of := typeMeta{Kind: strings.TrimSuffix(p.Kind, "List"), APIVersion: p.APIVersion}
	for _, raw := range p.Items {
		r, err := parseObject(raw, of)
		if err != nil {
			return err
		}
		if err := upsert(r); err != nil {
			return err
		}
	}
	return nil
}
