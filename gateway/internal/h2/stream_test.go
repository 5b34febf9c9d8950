package h2

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// owned is a detached stream, and what its owner was told.
type owned struct {
	*Stream
	news chan News
}

// detaching is a handler that detaches its stream.
func detaching(to chan<- owned) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		st := Detach(struct{ wrapped }{wrapped{w}})
		if st == nil {
			_, _ = io.WriteString(w, "not detached")
			return
		}
		o := owned{st, make(chan News, 10)}
		st.Own(func(n News) { o.news <- n })
		to <- o
	}
}

type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// told returns what the owner was told since the last call.
func (o owned) told() (out []News) {
	synctest.Wait()
	for {
		select {
		case n := <-o.news:
			out = append(out, n)
		default:
			return out
		}
	}
}

func (o owned) wants(t *testing.T, want ...News) {
	t.Helper()
	if got := o.told(); string(newsBytes(got)) != string(newsBytes(want)) {
		t.Errorf("the owner was told %v, want %v", got, want)
	}
}

func newsBytes(all []News) (out []byte) {
	for _, n := range all {
		out = append(out, byte(n))
	}
	return out
}

// writes writes to a detached stream, of which so many bytes are taken.
func (o owned) writes(t *testing.T, p string, want int) {
	t.Helper()
	n, err := o.Write([]byte(p))
	if blocked := errors.Is(err, ErrBlocked); n != want || blocked != (want < len(p)) || err != nil && !blocked {
		t.Fatalf("%d bytes of %d were taken, %v; want %d", n, len(p), err, want)
	}
}

// TestDetachedStream: it is written to without its handler, within its window, and finished.
func TestDetachedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan owned, 1)
		c := newRig(t, detaching(streams)).open(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 8})
		c.request(1, "GET", "/", true)
		st := <-streams
		c.wants("1: status 200")
		st.writes(t, "event 1", 7)
		c.wants(`1: "event 1"`)
		st.writes(t, "event 2", 1)
		st.Await(true)
		st.wants(t)
		c.must(c.WriteWindowUpdate(1, 100))
		st.wants(t, Writable)
		st.writes(t, "vent 2", 6)
		st.Await(true)
		st.wants(t, Writable)
		st.Await(true)
		st.Await(false)
		c.must(st.Finish())
		c.wants(`1: "e"`, `1: "vent 2"`, `1: "" end`)
		st.wants(t, Writable, Gone)
		st.Close()
		c.wants()
	})
}

// TestDetachedStreamThatIsClosed is reset.
func TestDetachedStreamThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan owned, 1)
		c := newRig(t, detaching(streams)).open()
		c.request(1, "GET", "/", true)
		(<-streams).Close()
		c.wants("1: status 200", "1: reset CANCEL")
	})
}

// TestClientThatLeaves: the owner of a detached stream is told when the client resets it, or its connection ends.
func TestClientThatLeaves(t *testing.T) {
	for name, leave := range map[string]func(*client) error{
		"reset":      func(c *client) error { return c.WriteRSTStream(1, http2.ErrCodeCancel) },
		"connection": func(c *client) error { return c.Conn.Close() },
		"fault":      func(c *client) error { return c.WriteWindowUpdate(0, 0) },
		"overflow":   func(c *client) error { return c.WriteWindowUpdate(1, 1<<31-1) },
	} {
		synctest.Test(t, func(t *testing.T) {
			streams := make(chan owned, 1)
			c := newRig(t, detaching(streams)).open()
			c.request(1, "GET", "/", true)
			st := <-streams
			c.must(leave(c))
			st.wants(t, Gone)
			if _, err := st.Write([]byte("x")); err == nil || errors.Is(err, ErrBlocked) {
				t.Errorf("%s: a write fails with %v", name, err)
			}
			st.Close()
			c.take()
		})
	}
}

// TestDetachedStreamsShareAConnection: of two streams that have more than the connection takes, both go on.
func TestDetachedStreamsShareAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan owned, 2)
		c := newRig(t, detaching(streams)).open(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		c.must(c.WriteWindowUpdate(0, 1<<30))
		c.request(1, "GET", "/", true)
		c.request(3, "GET", "/", true)
		both := []owned{<-streams, <-streams}
		synctest.Wait()
		const size = 2 << 20
		left := []int{size, size} // the first one is always asked first
		c.take()
		for left[0]+left[1] > 0 {
			for i, st := range both {
				n, err := st.Write(bytes.Repeat([]byte("x"), left[i]))
				if left[i] -= n; err == nil {
					continue
				}
				if !errors.Is(err, ErrBlocked) {
					t.Fatal(err)
				}
				st.Await(true)
			}
			synctest.Wait()
			if len(both[0].news)+len(both[1].news) == 0 && left[0]+left[1] > 0 {
				t.Fatalf("%v bytes are left, and nobody is told to write them", left)
			}
			both[0].told()
			both[1].told()
			if ahead := left[1] - left[0]; ahead > 2*outputFull {
				t.Fatalf("one stream is %d bytes ahead of the other", ahead)
			}
		}
		if frames := len(c.take()); frames > 2*size/(frameBytes/2) {
			t.Errorf("%d bytes were sent in %d frames", 2*size, frames)
		}
	})
}

// TestWindowOfAllStreams: a setting that opens the windows of all streams that wait tells as many of them as have room at once, and the
// others later.
func TestWindowOfAllStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan owned, settings.MaxStreams)
		c := newRig(t, detaching(streams)).open(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		var all []owned
		for i := range settings.MaxStreams {
			c.request(uint32(2*i+1), "GET", "/", true)
			st := <-streams
			st.writes(t, "event", 0)
			st.Await(true)
			all = append(all, st)
		}
		synctest.Wait()
		told := func() (n int) {
			for _, st := range all {
				n += len(st.news)
			}
			return n
		}
		of := all[0].conn
		of.mu.Lock()
		err := of.setInitialWindow(100)
		if n := told(); err != nil || n != of.turnsAtOnce() {
			t.Errorf("%d streams were told at once, %v; want %d", n, err, of.turnsAtOnce())
		}
		of.appendSettingsAck()
		of.mu.Unlock()
		synctest.Wait()
		if n := told(); n != len(all) {
			t.Errorf("%d streams were told, want %d", n, len(all))
		}
		for _, st := range all {
			st.Close()
		}
	})
}

// TestStreamsThatCannotBeDetached: those with a body that has not ended, and with an answer that has begun.
func TestStreamsThatCannotBeDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan owned, 1)
		c := newRig(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/begun" {
				w.WriteHeader(http.StatusAccepted)
			}
			detaching(streams)(w, r)
		}).open()
		c.request(1, "POST", "/", false)
		time.Sleep(linger)
		c.wants("1: status 200", `1: "not detached" end`, "1: reset NO_ERROR")
		c.request(3, "GET", "/begun", true)
		c.wants("3: status 202", `3: "not detached" end`)
	})
}

// TestDetachedStreamAfterItsHandler: what the handler still does has no effect.
func TestDetachedStreamAfterItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan owned, 1)
		c := newRig(t, func(w http.ResponseWriter, r *http.Request) {
			detaching(streams)(w, r)
			_, err := io.WriteString(w, "late")
			control := http.NewResponseController(w)
			for _, err := range []error{err, control.Flush(), control.SetWriteDeadline(time.Now()), control.SetReadDeadline(time.Now())} {
				if !errors.Is(err, errDetached) {
					t.Errorf("got %v", err)
				}
			}
		}).open()
		c.request(1, "GET", "/", true)
		st := <-streams
		synctest.Wait()
		st.writes(t, strings.Repeat("x", 50), 50)
		c.wants("1: status 200", "1: 50 bytes")
		st.Close()
	})
}

// TestDetachedStreamsCostNoGoroutine, and count as streams.
func TestDetachedStreamsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := make(chan owned, settings.MaxStreams)
		c := newRig(t, detaching(streams)).open()
		for i := range settings.MaxStreams {
			c.request(uint32(2*i+1), "GET", "/", true)
		}
		synctest.Wait()
		c.take()
		c.request(99, "GET", "/", true)
		c.wants("99: reset REFUSED_STREAM")
		(<-streams).Close()
		c.take()
		c.request(101, "GET", "/", true)
		c.wants("101: status 200")
	})
}
