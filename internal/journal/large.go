package journal

import (
	"bytes"
	"iter"
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/log"
)

// writeLarge writes a watch in several transactions. Until the last one, what the file has is not whole.
// If another watch waits for the file, or the memory of the log is needed, it is begun again later.
func (j *Journal) writeLarge(p *part) {
	hold := p.state.Pin()
	defer hold.Release()
	w, n := p.of, 0
	for chunk, last := range p.chunks() {
		if _, held := hold.Snapshot(); !held || !p.mayGoOn(j) {
			j.notify()
			return
		}
		r, err := j.writeChunk(p, chunk, last)
		if j.refused(err) {
			w.stored.Whole = false
			return
		}
		w.stored, p.drop = r, false
		n += len(chunk)
	}
	p.wrote(w.stored)
	j.written.Add(uint64(n))
}

func (p *part) mayGoOn(j *Journal) bool {
	if p.ends.IsZero() {
		return j.waiting.Load() == 0
	}
	return time.Now().Before(p.ends)
}

// writeChunk is one transaction of several.
func (j *Journal) writeChunk(p *part, chunk []log.Entry, last bool) (r record, err error) {
	err = j.update(func(tx *disk.Tx) error {
		t, err := p.begin(tx)
		if err != nil {
			return err
		}
		t.entries.Appended()
		for _, e := range chunk {
			if err := t.put(e); err != nil {
				return err
			}
		}
		err = t.finish(last)
		r = t.record
		return err
	})
	return r, err
}

// chunks returns the entries in parts, at least one, each with whether it is the last.
func (p *part) chunks() iter.Seq2[[]log.Entry, bool] {
	return func(yield func([]log.Entry, bool) bool) {
		var chunk []log.Entry
		size := 0
		in := p.entries()
		if p.all {
			in = p.byKey()
		}
		for e := range in {
			if size += e.Bytes(); size > TransactionBytes && len(chunk) > 0 {
				if !yield(chunk, false) {
					return
				}
				chunk, size = chunk[:0], e.Bytes()
			}
			chunk = append(chunk, e)
		}
		yield(chunk, true)
	}
}

// mostSorted is how many entries are sorted at a time, at least.
const mostSorted = 64 << 10

// byKey returns the entries in about the order of their keys, so that the pages of the file are written
// once. A sixteenth of them is sorted at a time.
func (p *part) byKey() iter.Seq[log.Entry] {
	return func(yield func(log.Entry) bool) {
		from := []byte(nil)
		for _, to := range append(p.splits(), nil) {
			var some []log.Entry
			for e := range p.entries() {
				key := e.RawKey()
				if bytes.Compare(key, from) >= 0 && (to == nil || bytes.Compare(key, to) < 0) {
					some = append(some, e)
				}
			}
			slices.SortFunc(some, func(a, b log.Entry) int { return bytes.Compare(a.RawKey(), b.RawKey()) })
			for _, e := range some {
				if !yield(e) {
					return
				}
			}
			from = to
		}
	}
}

// splits returns keys that divide the entries into parts of about the same size, which are known from
// some of them.
func (p *part) splits() (at [][]byte) {
	n := p.state.Count() + p.state.Tombstones()
	parts := min((n+mostSorted-1)/mostSorted, 16)
	if parts < 2 {
		return nil
	}
	const sampled = 1024
	var sample [][]byte
	i, every := 0, max(n/sampled, 1)
	for e := range p.entries() {
		if i++; i%every == 0 {
			sample = append(sample, slices.Clone(e.RawKey()))
		}
	}
	slices.SortFunc(sample, bytes.Compare)
	for i := 1; i < parts; i++ {
		at = append(at, sample[i*len(sample)/parts])
	}
	return at
}
