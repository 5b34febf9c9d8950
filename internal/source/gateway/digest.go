package gateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"unsafe"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/stream"
)

const (
	// mostUnverified is how often in a row a source tries to verify what it has, before it takes a snapshot, and mostGone
	// how often if the state was gone: another replica may have sent its digest.
	mostUnverified, mostGone = 2, 5
	// verifiedCost is about what a resource takes while what is held is compared, besides its key.
	verifiedCost = 3*int64(unsafe.Sizeof("")) + 2*int64(unsafe.Sizeof(stream.Resource{})) + 128
)

// verifies reports whether a member of a request can resume by digest: its sink tells what it has, and that was not
// in vain lately.
func (m *member) verifies() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reader == nil {
		return true
	}
	_, is := m.reader.Sink.(stream.Holding)
	return is && m.reader.source.unverified < mostUnverified
}

// mostWaiting is how many events may come before the one with the position, which are of the same flush, and before what
// is held is verified. mostWaitingBytes is how many bytes of them may wait for that, at most half of what the watch may have.
const mostWaiting, mostWaitingBytes = 10_000, 8 << 20

// waiting are events that are handled once one of them has the position, and what is held is verified.
type waiting struct {
	events       []client.Event
	bytes        int64         // that the sink was charged for them and for the verification
	verification *verification // nil: none is under way
}

// full returns what ends before more events may wait; nil: more may.
func (w *waiting) full(sink stream.Sink) <-chan struct{} {
	if w.verification == nil || len(w.events) < mostWaiting && w.bytes < w.verification.cost+int64(stream.LargestMessage(sink, mostWaitingBytes)) {
		return nil
	}
	return w.verification.done
}

// waitingCost is about what such an event takes, besides its key and its value.
const waitingCost = int64(unsafe.Sizeof(client.Event{}))

// forget drops what waits, with the verification, and returns it.
func (w *waiting) forget(sink stream.Sink) []client.Event {
	events := w.events
	if v := w.verification; v != nil && v.cancel != nil {
		v.cancel()
	}
	sink.Charge(-w.bytes)
	*w = waiting{}
	return events
}

// wait keeps the events from an end_of_snapshot that asks to verify on. Once one of them has the position, which names the
// order, it makes the verification. They are handled after that.
func (r *reader) wait(e client.Event) error {
	if e.Type == client.Reset {
		r.waiting.forget(r.Sink)
		return r.receive(e)
	}
	if err := r.hold(e); err != nil {
		return err
	}
	at := ownPosition(e.ID, r.Watch)
	switch {
	case r.waiting.verification != nil:
		return nil
	case at == "" && len(r.waiting.events) > mostWaiting:
		return r.Invalid("%d events after an end_of_snapshot, without a position: want one", mostWaiting)
	case at == "":
		return nil
	}
	position, err := stream.ParsePosition(at)
	if err != nil {
		return r.Invalid("%v", err)
	}
	return r.verify(&r.waiting.events[0], position, false)
}

// hold has an event wait, and the watch resyncing from the first one on.
func (r *reader) hold(e client.Event) error {
	if len(r.waiting.events) == 0 {
		if err := r.Suspend("verifying what is held"); err != nil {
			return err
		}
	}
	cost := waitingCost + int64(len(e.Key)+len(e.Value))
	r.Sink.Charge(cost)
	r.waiting.events, r.waiting.bytes = append(r.waiting.events, e), r.waiting.bytes+cost
	return nil
}

// verification finds out what differs between what the sink holds and a state. It is made and handled under the mu of the
// member, and differs is not: nothing that the sink holds changes meanwhile, since the events of the watch wait.
type verification struct {
	// Static after construction.
	source    *Source
	digest    string
	position  stream.Position
	held      []stream.Resource
	revisions bool          // those of what is held are others
	live      bool          // the stream has brought the sink to the state, and can go on
	cost      int64         // that the sink was charged
	done      chan struct{} // closed when it is over

	cancel context.CancelFunc // nil: it has not begun
}

// differs asks the upstream. It may be called from any goroutine.
func (v *verification) differs(ctx context.Context) (d client.Difference, err error) {
	server, err := v.source.upstream.config.requests()
	if err != nil {
		return d, err
	}
	defer server.Close()
	return server.Difference(ctx, v.source.watch, v.source.view, v.digest, wire(slices.Values(v.held)), v.revisions)
}

// verify makes the verification of what the sink holds, by the state that an end_of_snapshot or a bookmark is about. position is
// one of the same order, at that state or later. live says that the sink should have that state.
func (r *reader) verify(e *client.Event, position stream.Position, live bool) error {
	revision, err := decodeRevision(e.Revision)
	switch {
	case err != nil:
		return r.Invalid("%v", err)
	case position.Upserts < revision:
		return r.Invalid("position %.80q: want one at revision %d or later", position.String(), revision)
	}
	position = position.At(revision)
	v := &verification{
		source: r.source, digest: e.Digest, position: position, revisions: !live && !r.hasRevisions(position), live: live, done: make(chan struct{}),
	}
	for one := range r.Sink.(stream.Holding).Held {
		v.held, v.cost = append(v.held, one), v.cost+verifiedCost+int64(len(one.Key))
	}
	r.Sink.Charge(v.cost)
	r.waiting.bytes, r.waiting.verification = r.waiting.bytes+v.cost, v
	return nil
}

// verified makes the sink have the state: what it holds, and what differs of that. It then has the same as after a snapshot.
// The events that have waited are handled. If it cannot, the next request begins where this one did, or after some failures
// with a snapshot. A live stream goes on as it is if there is no answer for now.
func (r *reader) verified(v *verification, found client.Difference, err error) error {
	var state []stream.Resource
	if err == nil {
		state, err = replaced(slices.Values(v.held), found)
	}
	if v.live && errors.Is(err, client.ErrUnavailable) && r.ctx.Err() == nil {
		if err := r.Continue(); err != nil {
			return err
		}
		return r.goOn()
	}
	if err != nil {
		var p *client.Problem
		switch gone := errors.As(err, &p) && p.Status == http.StatusGone; {
		case r.ctx.Err() != nil, errors.Is(err, client.ErrUnavailable): // says nothing about what is held
		case gone && r.source.gone < mostGone:
			r.source.gone++
		default:
			r.source.unverified++
		}
		if errors.Is(err, client.ErrTooDifferent) {
			r.source.unverified = mostUnverified
		}
		return r.source.failed(fmt.Errorf("verifying what is held: %w", err))
	}
	if err := r.Replace(v.position, v.position.Upserts, slices.Values(state)); err != nil {
		return err
	}
	r.source.unverified, r.source.gone = 0, 0
	return r.goOn()
}

// goOn handles the events that have waited.
func (r *reader) goOn() error {
	r.source.repairs.differing = false
	for _, e := range r.waiting.forget(r.Sink)[1:] {
		if err := r.receive(e); err != nil {
			return err
		}
	}
	return nil
}

// hasRevisions reports whether what is held has the revisions of the state at a position wherever it has its values:
// that is of the same order, and what has changed since has come.
func (r *reader) hasRevisions(at stream.Position) bool {
	return r.changed && at.Epoch == r.Position().Epoch
}

// wire returns resources as the upstream sends them.
func wire(of iter.Seq[stream.Resource]) iter.Seq[client.Resource] {
	return func(yield func(client.Resource) bool) {
		for one := range of {
			key, encoding := stream.WireKey(one.Key)
			if !yield(client.Resource{Key: key, KeyEncoding: encoding, Value: one.Value, Encoding: one.Encoding}) {
				return
			}
		}
	}
}

// replaced returns what is held, as the difference says.
func replaced(held iter.Seq[stream.Resource], d client.Difference) ([]stream.Resource, error) {
	read := make(map[string]stream.Resource, len(d.Upserts))
	for i := range d.Upserts {
		one, err := decodeUpsert(&d.Upserts[i])
		if err != nil {
			return nil, err
		}
		read[one.Key] = one
	}
	extra := make(map[string]bool, len(d.Extra))
	for _, id := range d.Extra {
		extra[id] = true
	}
	var state []stream.Resource
	for one := range held {
		id := idOf(one.Key)
		if _, other := read[one.Key]; other || extra[id] {
			continue
		}
		if text, known := d.Revisions[id]; known {
			revision, err := decodeRevision(text)
			if err != nil {
				return nil, err
			}
			one.Revision = revision
		}
		state = append(state, one)
	}
	return slices.AppendSeq(state, maps.Values(read)), nil
}

// idOf returns the ID that the client gives a resource.
func idOf(key string) string {
	text, encoding := stream.WireKey(key)
	return client.Resource{Key: text, KeyEncoding: encoding}.ID()
}

// requests returns a client for requests beside the stream, with the same credentials.
func (c *Config) requests() (*client.Client, error) {
	text, err := c.header()
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	for name, value := range text {
		header.Set(name, value)
	}
	transport := c.transport()
	transport.DisableKeepAlives = false
	transport.ResponseHeaderTimeout = client.AnswerWithin
	return client.New(c.URL, client.Options{Header: header, Transport: unredirected{transport}})
}

// unredirected follows no redirects, which could send credentials elsewhere.
type unredirected struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t unredirected) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.Transport.RoundTrip(r)
	if err == nil && response.StatusCode/100 == 3 {
		response.Body.Close()
		return nil, fmt.Errorf("%w: the answer is a redirect: want the URL of the gateway itself", client.ErrInvalid)
	}
	return response, err
}
