package consulsource

import (
	"cmp"
	"slices"

	"github.com/watchtide/watchtide/stream"
)

// check takes a list that was read beside the live watch. It shows one state that
// there was, so that all that differs from ours becomes visible together: what a
// narrowed policy hides, and whatever the watch did not tell.
func (f *follower) check(l listing) error {
	news, newest, err := f.newsOf(l)
	if err != nil {
		return err
	}
	gone, err := f.complete(newest)
	if err != nil {
		return err
	}
	if len(news)+len(gone) == 0 {
		return nil
	}
	return f.apply(news, gone)
}

// newsOf returns what the list shows and the watch has not told, oldest first.
func (f *follower) newsOf(l listing) (news []told, newest uint64, err error) {
	for _, r := range l.resources {
		t, err := f.source.config.read(r)
		if err != nil {
			return nil, 0, err
		}
		newest = max(newest, t.version)
		if f.merge.Listed(stream.Resource{Key: t.key, Revision: t.version}) {
			news = append(news, t)
		}
	}
	slices.SortFunc(news, func(a, b told) int { return cmp.Compare(a.version, b.version) })
	return news, newest, nil
}

// apply makes what is gone and what is new visible together.
func (f *follower) apply(news []told, gone []string) error {
	memory := &f.source.memory
	for _, key := range gone {
		if err := f.sink.Delete(key, f.objects[key].version); err != nil {
			return err
		}
		delete(f.objects, key)
	}
	for _, t := range news {
		if err := memory.fits(&f.source.config, t); err != nil {
			return err
		}
		r, err := t.resource()
		if err != nil {
			return err
		}
		if err := f.sink.Upsert(r); err != nil {
			return err
		}
		f.objects[t.key] = t.object
	}
	if len(news) > 0 {
		memory.revision = news[len(news)-1].version
	}
	return f.sink.Commit(memory.revision)
}
