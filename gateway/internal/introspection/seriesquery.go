package introspection

import (
	"cmp"
	"slices"
	"time"
)

// Step is the resolution of figures.
type Step int64

// The resolutions. Fine samples are kept for five minutes, coarse ones for an hour.
const (
	Fine   Step = fineStep
	Coarse Step = coarseStep
)

func (s Step) kept() int64 {
	if s == Fine {
		return fineKept
	}
	return coarseKept
}

// SeriesQuery says which figures are wanted.
type SeriesQuery struct {
	Entry string // empty: those of all, in order of their names
	Limit int    // at most so many entries
	Step  Step
	Since time.Time // only intervals that end later; zero: all
}

// Samples is how many samples of each entry are in the answer at most.
func (q SeriesQuery) Samples(now time.Time) int64 {
	return min(q.Step.kept(), max(0, (now.Unix()-q.Since.Unix())/int64(q.Step))+2)
}

// SeriesAnswer has figures of one time for several entries.
type SeriesAnswer struct {
	Start   int64         `json:"start"` // of the first interval, in seconds since 1970
	Step    Step          `json:"step"`  // seconds
	Samples int           `json:"samples"`
	Count   int           `json:"count"` // entries that there are
	Total   *Columns      `json:"total"` // nil: one entry was asked for
	Watches []WatchSeries `json:"watches"`
	Without []Lack        `json:"without"` // entries that have no figures
}

// WatchSeries has the figures of one entry.
type WatchSeries struct {
	Name     string `json:"watch"`
	Template bool   `json:"template,omitempty"`
	Columns
}

// Lack says why an entry has no figures.
type Lack struct {
	Name   string `json:"watch"`
	Reason string `json:"reason"`
}

// Ask returns the figures. They are empty while nothing is recorded.
func (r *Recorder) Ask(q SeriesQuery) SeriesAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := SeriesAnswer{Step: q.Step, Count: len(r.entries), Watches: []WatchSeries{}, Without: []Lack{}}
	if r.first == 0 {
		return a
	}
	newest := r.second / int64(q.Step)
	from := max(newest-q.Step.kept()+1, r.first/int64(q.Step), q.Since.Unix()/int64(q.Step))
	a.Start, a.Samples = from*int64(q.Step), int(max(0, newest-from+1))
	if q.Entry == "" {
		columns := columnsOf(r.total.span(q.Step, from, newest))
		a.Total = &columns
	}
	for _, e := range r.asked(q) {
		if e.hour == nil {
			a.Without = append(a.Without, Lack{e.name, e.why})
			continue
		}
		a.Watches = append(a.Watches, WatchSeries{e.name, e.template != nil, columnsOf(e.hour.span(q.Step, from, newest))})
	}
	return a
}

func (h *hour) span(s Step, from, to int64) []sample {
	if s == Fine {
		return span(h.fine[:], h.newest[0], from, to)
	}
	return span(h.coarse[:], h.newest[1], from, to)
}

// asked returns the entries that a query is about, in order.
func (r *Recorder) asked(q SeriesQuery) []*entry {
	if q.Entry != "" {
		if e := r.entries[q.Entry]; e != nil {
			return []*entry{e}
		}
		return nil
	}
	all := make([]*entry, 0, len(r.entries))
	for _, e := range r.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.name, b.name) })
	return all[:min(len(all), q.Limit)]
}
