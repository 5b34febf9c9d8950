package introspection

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// sharedAnswer renders an answer once for all operators who ask for it at the same time. It
// is as new as if each had it rendered: a rendering is shared by the requests that arrive
// before it begins. One is under way at a time, and together they take at most a tenth of
// a processor, so that operators who poll cost readers nothing.
//
// All methods may be called from any goroutine.
type sharedAnswer struct {
	// Static after construction.
	render http.HandlerFunc
	turn   chan time.Time // when the next rendering may begin; taken while one is under way

	mu      sync.Mutex            // guards waiting
	waiting map[string]*rendering // those that have not begun, by what was asked for
}

// A rendering rests nine times as long as it took, but not longer than maxRest.
const (
	restTimes = 9
	maxRest   = time.Second
)

// added are the headers to which a rendering adds something, or not, after others did. No other
// header of a request's answer gets into that of another one.
var added = []string{"Vary", "Cache-Control"}

// Shared returns a handler whose answers depend on nothing but the URL and the formats that
// a request accepts.
func Shared(render http.HandlerFunc) http.HandlerFunc {
	s := &sharedAnswer{render: render, turn: make(chan time.Time, 1), waiting: map[string]*rendering{}}
	s.turn <- time.Time{}
	return s.serve
}

// rendering is one answer. The request that began it writes it; others read it after done.
type rendering struct {
	done   chan struct{}
	header http.Header
	status int
	body   bytes.Buffer
}

func (s *sharedAnswer) serve(w http.ResponseWriter, r *http.Request) {
	key := strings.Join(slices.Concat([]string{r.URL.RawQuery, r.Header.Get("Accept"), r.Header.Get("Accept-Encoding")}, w.Header()["Vary"], w.Header()["Cache-Control"]), "\x00")
	s.mu.Lock()
	one, shared := s.waiting[key]
	if !shared {
		one = &rendering{done: make(chan struct{}), header: http.Header{}, status: http.StatusOK}
		for _, name := range added {
			one.header[name] = slices.Clone(w.Header()[name])
		}
		s.waiting[key] = one
	}
	s.mu.Unlock()
	if !shared {
		s.make(one, key, r)
	}
	select {
	case <-one.done:
	case <-r.Context().Done():
		return
	}
	for name, values := range one.header {
		w.Header()[name] = values
	}
	w.WriteHeader(one.status)
	_, _ = w.Write(one.body.Bytes()) // who does not read it is cut off
}

// make renders when it is its turn. It goes on if the client leaves: others may wait for it.
func (s *sharedAnswer) make(one *rendering, key string, r *http.Request) {
	if wait := time.Until(<-s.turn); wait > 0 {
		<-time.After(wait)
	}
	s.mu.Lock()
	delete(s.waiting, key)
	s.mu.Unlock()
	defer close(one.done)
	began := time.Now()
	defer func() {
		now := time.Now()
		s.turn <- now.Add(min(restTimes*now.Sub(began), maxRest))
	}()
	s.render(one, r.WithContext(context.WithoutCancel(r.Context())))
}

// The methods of http.ResponseWriter.

func (one *rendering) Header() http.Header         { return one.header }
func (one *rendering) WriteHeader(status int)      { one.status = status }
func (one *rendering) Write(p []byte) (int, error) { return one.body.Write(p) }
