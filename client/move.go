package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
)

// Place is where a window of a [View] is.
type Place struct {
	// Offset is how many resources come before it.
	Offset int
	// After, in place of Offset, is a Next that was received for the same Order.
	After string
	// Limit is how many resources it has at most; 0: as many as before.
	Limit int
}

// Mover moves the window of a loop over [Client.Watch], or of a [Replica], to which it is given as an option
// beside a [View] with an Order. In a stream of several watches it is about the first one. It serves one loop.
//
// The zero value is ready for use. Its methods may be called from any goroutine.
type Mover struct {
	moves sync.Mutex // held during a move

	mu     sync.Mutex // guards the following fields
	place  *Place     // nil: that of the View
	watch  string
	client *Client
	stream string                  // the name of the connection; empty: it has none
	cut    context.CancelCauseFunc // ends the connection; nil: there is none
}

// errNoWindow means that there is nothing to move.
var errNoWindow = errors.New("a Mover moves a window: want a View with an Order and a Limit beside it, and no Counting")

// errMoved ends a connection that cannot be moved.
var errMoved = errors.New("the window was moved")

func (m *Mover) apply(f *follower) { f.mover = m }

// Move makes the loop go on with another window of the same order. The server sends only what is new in it, and
// then a bookmark, or an end_of_snapshot, with Move. If the request gets to another server than the stream,
// there is another connection, which begins with a reset. So it does if the server cannot move windows.
//
// After an error, the next connection has the former window. If there is no connection, the next one has the new one.
func (m *Mover) Move(ctx context.Context, to Place) error {
	m.moves.Lock()
	defer m.moves.Unlock()
	m.mu.Lock()
	before := m.place
	if to.Limit == 0 && before != nil {
		to.Limit = before.Limit
	}
	m.place = &to
	client, stream, cut := m.client, m.stream, m.cut
	m.mu.Unlock()
	var err error
	if stream != "" {
		err = client.moveWindow(ctx, stream, m.watch, to)
	}
	var p *Problem
	switch {
	case cut == nil:
	case stream == "", errors.As(err, &p) && p.Status == http.StatusNotFound:
		cut(errMoved)
		return nil
	}
	if err != nil {
		m.mu.Lock()
		m.place = before
		m.mu.Unlock()
	}
	return err
}

// moveWindow moves the window of a watch of a stream.
func (c *Client) moveWindow(ctx context.Context, stream, watch string, to Place) error {
	query := url.Values{"watch": {watch}}
	View{Limit: to.Limit, Offset: to.Offset, After: to.After}.AddTo(query, "")
	var answer struct {
		Move uint64 `json:"move"`
	}
	return c.write(ctx, http.MethodPost, c.url(query, "v1", "streams", stream, "window"), nil, Condition{}, &answer)
}

// connects is called before a connection of the loop, which cut ends. m may be nil.
func (m *Mover) connects(c *Client, watch string, cut context.CancelCauseFunc) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client, m.watch, m.stream, m.cut = c, watch, "", cut
}

// ended is called after a connection. m may be nil.
func (m *Mover) ended() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stream, m.cut = "", nil
}

// greeted is called with the name of a connection. m may be nil.
func (m *Mover) greeted(stream string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stream = stream
}

// of returns the view of a watch, with the window as it was moved. m may be nil.
func (m *Mover) of(v View, watch string) View {
	if m == nil {
		return v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.place == nil || m.watch != watch {
		return v
	}
	v.Offset, v.After = m.place.Offset, m.place.After
	if m.place.Limit != 0 {
		v.Limit = m.place.Limit
	}
	return v
}
