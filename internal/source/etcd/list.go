package etcd

import (
	"context"
	"fmt"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// firstPage is how many keys are read first, before their size is known.
	firstPage = 100
	// pageBytes is the approximate size of a page. Requests should be few,
	// since older servers count the rest of the range for each.
	pageBytes = 8 << 20
	// maxPage keeps pages of small keys from holding up the member.
	maxPage = 20_000
	// kvCost is what a key takes besides its bytes and those of its value.
	kvCost = 256
)

// page is a part of the list.
type page struct {
	kvs      []*mvccpb.KeyValue
	bytes    int    // held by kvs
	revision uint64 // as of which it was read
	total    int64  // keys of the range at that revision
	last     bool
	err      error // instead of all other fields
}

// list reads the range page by page, each as of the newest revision at that time,
// while the follower processes the page before. It writes to pages, and leaves it
// open.
type list struct {
	// Static after construction.
	ctx   context.Context
	on    *connection
	keys  keyRange
	limit func(context.Context) (context.Context, context.CancelFunc) // of one request
	bytes int                                                         // of a page, approximately
	pages chan page
}

// run reads until the end of the range, an error or the end of the context.
func (l *list) run() {
	from, size, oldest, newest := l.keys.start, int64(firstPage), uint64(0), uint64(0)
	for {
		p, more := l.read(from, clientv3.WithLimit(size))
		if size > 1 && adapter.TooLarge(p.err) {
			size = max(size/8, 1)
			continue
		}
		if p.err == nil {
			p.err = p.check(from, newest, more)
		}
		if oldest == 0 {
			oldest = p.revision
		}
		newest = p.revision
		p.last = p.err == nil && !more && l.on.ordered
		if !l.send(p) || p.last {
			return
		}
		if !more {
			break
		}
		from, size = string(p.kvs[len(p.kvs)-1].Key)+"\x00", nextSize(p.kvs, l.bytes)
	}
	l.again(oldest)
}

// again reads the changes since the first page, or since the position from which a
// watch resumes, and the number of keys: for a member that cannot report how far
// its watch is.
func (l *list) again(since uint64, options ...clientv3.OpOption) {
	p, _ := l.read(l.keys.start, append(options, clientv3.WithMinModRev(int64(since)+1))...)
	p.last = p.err == nil
	l.send(p)
}

func (l *list) read(from string, options ...clientv3.OpOption) (p page, more bool) {
	ctx, cancel := l.limit(l.ctx)
	defer cancel()
	answer, err := l.on.client.Get(ctx, from, append(options, clientv3.WithRange(l.keys.end))...)
	if err != nil {
		return page{err: because(ctx, err)}, false
	}
	p = page{kvs: answer.Kvs, revision: uint64(answer.Header.GetRevision()), total: answer.Count}
	for _, kv := range p.kvs {
		p.bytes += len(kv.GetKey()) + len(kv.GetValue()) + kvCost
	}
	if err := l.on.check(answer.Header); err != nil {
		return page{err: err}, false
	}
	return p, answer.More
}

// check rejects a page that does not belong where it was read. Without that a list would
// not end, or miss keys.
func (p *page) check(from string, revision uint64, more bool) error {
	before := ""
	for i, kv := range p.kvs {
		if key := string(kv.GetKey()); key < from || i > 0 && key <= before {
			return fmt.Errorf("%w: a page of the list from %.80q has key %.80q after %.80q: want rising keys",
				stream.ErrInvalid, from, key, before)
		}
		before = string(kv.GetKey())
	}
	switch n := int64(len(p.kvs)); {
	case p.revision < max(revision, 1):
		return fmt.Errorf("%w: a page of the list is of revision %d, after one of %d", stream.ErrInvalid, p.revision, revision)
	case more && n == 0:
		return fmt.Errorf("%w: an empty page of the list, of %d keys: want the last page, or keys", stream.ErrInvalid, p.total)
	case !more && n < p.total:
		return fmt.Errorf("%w: the last page of the list has %d keys of %d", stream.ErrInvalid, n, p.total)
	}
	return nil
}

// send reports whether the page was taken, and another one is wanted.
func (l *list) send(p page) bool {
	select {
	case l.pages <- p:
		return p.err == nil
	case <-l.ctx.Done():
		return false
	}
}

// nextSize is how many keys of this size fill a page of so many bytes.
func nextSize(kvs []*mvccpb.KeyValue, page int) int64 {
	bytes := 0
	for _, kv := range kvs {
		bytes += len(kv.Key) + len(kv.Value) + 64
	}
	return int64(min(max(page*len(kvs)/bytes, 1), maxPage))
}
