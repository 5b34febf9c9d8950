package kubernetes

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/watchtide/watchtide/stream"
)

// listMeta is what a page says about the list.
type listMeta struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
}

// head returns the server's present revision, not that of its cache.
func (c *client) head(ctx context.Context) (uint64, error) {
	meta, err := c.page(ctx, c.query("limit", "1"), func(json.RawMessage, typeMeta) error { return nil })
	if err != nil {
		return 0, c.explained(ctx, err)
	}
	return parseRevision(meta.ResourceVersion)
}

// page reads one page, and passes its objects on one by one as they arrive.
func (c *client) page(ctx context.Context, query url.Values, each func(json.RawMessage, typeMeta) error) (meta listMeta, err error) {
	err = c.read(ctx, c.collection(), query, func(body *ration) error {
		d := &pageDecoder{d: json.NewDecoder(body), done: func() { c.hold(-body.take()) }, each: each}
		meta, err = d.decode()
		return err
	})
	return meta, err
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
	var b book
	for more := true; more; {
		b.turn()
		meta, err := c.page(ctx, c.query("limit", limit, "continue", b.next), func(raw json.RawMessage, of typeMeta) error {
			r, err := parseObject(raw, of)
			if err == nil {
				err = b.object(r.Key)
			}
			if err != nil {
				return err
			}
			return upsert(r)
		})
		if err == nil {
			more, err = b.page(meta)
		}
		if err != nil {
			return 0, err
		}
	}
	return parseRevision(b.revision)
}

// maxEmptyPages is how many pages in a row may have no object. The server fills its pages.
const maxEmptyPages = 100

// book checks that the pages of a list are of one state, and come to an end: keys
// rise from page to page, as the server stores them.
type book struct {
	revision string // of all pages
	next     string // where the next page begins

	before, newest string // the highest key of earlier pages, and with the page under way
	objects        int    // on the page under way
	empty          int    // pages without an object, in a row
}

// turn begins a page.
func (b *book) turn() { b.before, b.objects = b.newest, 0 }

// object checks the next object of a page.
func (b *book) object(key string) error {
	if b.next != "" && key <= b.before {
		return invalid("a page of the list has %.200q, after a page that went up to %.200q: want each object once, by name", key, b.before)
	}
	b.objects++
	b.newest = max(b.newest, key)
	return nil
}

// page checks a page that was read, and reports whether there is another one.
func (b *book) page(meta listMeta) (more bool, err error) {
	if b.revision == "" {
		b.revision = meta.ResourceVersion
	}
	b.empty++
	if b.objects > 0 {
		b.empty = 0
	}
	switch {
	case meta.ResourceVersion != b.revision:
		return false, invalid("pages of one list are at the resourceVersions %.40q and %.40q: want one state", b.revision, meta.ResourceVersion)
	case meta.Continue == "":
		return false, nil
	case meta.Continue == b.next, b.empty > maxEmptyPages:
		return false, invalid("a list that does not end: after %d pages without an object, it continues at %.40q", b.empty, meta.Continue)
	}
	b.next = meta.Continue
	return true, nil
}
