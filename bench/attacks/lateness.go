package main

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// lateness is how late the changes of a watch reach a stream. The values that are written
// have a member t: the time, in nanoseconds. Any goroutine may use it.
type lateness struct {
	mu  sync.Mutex
	all []time.Duration // guarded by mu
}

var written = regexp.MustCompile(`"t": ?(\d{19})`)

// follow measures a stream until ctx is done.
func (l *lateness) follow(ctx context.Context, c *client, path string) (wait func()) {
	return c.follow(ctx, path, func(line string) {
		m := written.FindStringSubmatch(line)
		if m == nil {
			return
		}
		ns, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return
		}
		l.add(time.Since(time.Unix(0, ns)))
	})
}

func (l *lateness) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

// take returns what was measured since the last call, the lowest first.
func (l *lateness) take() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	slices.Sort(all)
	return all
}

// quantile returns what a part of the sorted durations does not exceed; an hour if there are
// none.
func quantile(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return time.Hour
	}
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*part))]
}
