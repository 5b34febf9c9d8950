package gateway

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Random histories as browsers see them: two gateways over one upstream, and clients
// that stall, hang up in the middle of a flush, and reconnect elsewhere with any id
// that they ever received. The checkers of the guarantees then examine what
// arrived over HTTP, byte by byte.
func TestHistoriesOverHTTP(t *testing.T) {
	histories := gatewaytest.Length(60, 20)
	const steps = 120
	var shared uint64 // how often a client was sent what was rendered for several
	var shards bool
	usual := [4]int{storage.FlushSize, storage.ReplaySize, storage.TurnEntries, storage.SegmentSize}
	divide := func(of [4]int) {
		storage.FlushSize, storage.ReplaySize, storage.TurnEntries, storage.SegmentSize = of[0], of[1], of[2], of[3]
	}
	defer divide(usual)
	for seed := range uint64(histories) {
		if divide(usual); seed%2 == 1 {
			divide([4]int{300, 1000, 4, 500}) // a snapshot takes several flushes
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed)
				for range steps {
					w.step()
					synctest.Wait()
					w.saw()
				}
				w.settle()
				for _, p := range w.parts {
					if err := streamtest.CheckAll(p.history); err != nil {
						t.Errorf("%s: %v", p.query, err)
					}
				}
				for _, g := range w.gateways {
					_, sent, _ := g.gateway.shards.Stretches()
					shared += sent
					shards = shards || g.gateway.shards != nil
				}
			})
		})
	}
	if shards && shared == 0 {
		t.Error("no client was sent what others were sent too")
	}
	t.Logf("%d histories of %d steps; clients were sent %d stretches that others were sent too", histories, steps, shared)
}

// world is one running history.
type world struct {
	t        *testing.T
	random   *rand.Rand
	upstream *streamtest.Upstream
	replicas []*streamtest.Replica
	gateways []*rig
	parts    []*worldPart
	order    atomic.Int64
	epochs   int
	values   int
	clients  []*recorder
	everyone []*recorder // including disconnected ones
}

// worldPart is the watch, or a view of it, with what its clients saw.
type worldPart struct {
	query      string
	definition *view.Definition // nil: all of the watch
	history    *streamtest.History
	epochs     sync.Map // those of the watch, by name in the part
}

// served returns a position as a client is sent it, and original one as the watch has it:
// an epoch that the gateway has named itself cannot be told from its name in a view.
func (p *worldPart) served(position stream.Position) stream.Position {
	if p.definition != nil {
		position.Epoch = p.definition.Epoch(position.Epoch)
	}
	return position
}

func (p *worldPart) original(position stream.Position) stream.Position {
	if name, known := p.epochs.Load(position.Epoch); known {
		position.Epoch = name.(string)
	}
	return position
}

// saw records the epochs of the watch at all gateways.
func (w *world) saw() {
	for _, g := range w.gateways {
		a, _ := g.Registry.Watch("a")
		at := stream.Position{Epoch: a.Snapshot().Epoch()}
		for _, p := range w.parts {
			p.epochs.Store(p.served(at).Epoch, at.Epoch)
		}
	}
}

// of returns the part of a watch at a gateway.
func (p *worldPart) of(t *testing.T, g *Gateway, w *watch.Watch) *watch.Watch {
	if p.definition == nil {
		return w
	}
	v, err := g.views.Open(w, p.definition, views.Request{})
	if err != nil {
		t.Error(err)
	}
	return v
}

// truth returns the history of the upstream as the part has it.
func (p *worldPart) truth(all *streamtest.Truth) *streamtest.Truth {
	if p.definition == nil {
		return all
	}
	return all.Narrow(func(epoch string) string { return epoch }, func(r stream.Resource) (stream.Resource, bool) {
		in, _ := p.definition.Matches(r)
		r, err := p.definition.Project(r)
		return r, in && err == nil
	})
}

// worldParts are what clients ask for.
var worldParts = []view.Params{{}, {Prefix: "x/"}, {Filter: "value.n % 2 == 0", Fields: []string{"n"}}}

const (
	worldHeartbeat  = 15 * time.Second
	worldStaleAfter = time.Second
)

func newWorld(t *testing.T, seed uint64) *world {
	u := streamtest.NewUpstream("e0", streamtest.DeleteRevisions(seed%3))
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), upstream: u}
	for _, params := range worldParts {
		p := &worldPart{
			query: "?" + url.Values{"prefix": {params.Prefix}, "filter": {params.Filter}, "fields": params.Fields}.Encode(),
			history: &streamtest.History{
				Heartbeat: worldHeartbeat, StaleAfter: worldStaleAfter,
				DeletesUnnumbered: seed%3 != uint64(streamtest.OwnRevision),
				Freshness:         map[string][]streamtest.Freshness{},
			},
		}
		if d, err := view.Parse(params); err != nil {
			t.Fatal(err)
		} else if !d.IsWhole() {
			p.definition = d
		}
		w.parts = append(w.parts, p)
	}
	w.addReplica()
	if seed%3 == uint64(streamtest.OwnRevision) {
		// Elsewhere a second replica may repeat deletes: they share a position.
		w.addReplica()
	}
	return w
}

// addReplica adds a gateway, and the endpoint of the upstream that it follows.
func (w *world) addReplica() {
	r := newRig(w.t, Config{StreamSettings: StreamSettings{Heartbeat: worldHeartbeat, MaxAge: 5 * time.Minute, Drain: -1}})
	replica := w.upstream.Replica()
	_, err := r.Registry.Add(watch.Config{
		Name: "a", Source: replica, StaleAfter: worldStaleAfter, Logger: slog.New(slog.DiscardHandler),
		History: log.Retention{MaxDeletes: 5},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.replicas, w.gateways = append(w.replicas, replica), append(w.gateways, r)
}

func (w *world) oneOf(n int) bool { return w.random.IntN(n) == 0 }

func (w *world) replica() *streamtest.Replica { return w.replicas[w.random.IntN(len(w.replicas))] }

// step takes one random step.
func (w *world) step() {
	switch w.random.IntN(14) {
	case 0, 1, 2, 3:
		w.write()
	case 4, 5:
		w.replica().Catch(w.random.IntN(4))
	case 6:
		w.disturb()
	case 7, 8:
		time.Sleep(time.Duration(w.random.Int64N(int64(6 * time.Second))))
	case 9:
		w.connect(1)
	case 10:
		w.connect(4)
	case 11:
		if c := w.client(); c != nil {
			c.slow(w.random.IntN(2) == 0)
		}
	case 12, 13:
		if c := w.client(); c != nil {
			c.hangUpAfter(w.random.IntN(4))
		}
	}
}

func (w *world) write() {
	var writes []streamtest.Write
	for key := range 30 {
		if !w.oneOf(10) {
			continue
		}
		w.values++
		name := fmt.Sprintf("%c/%d", "xy"[key%2], key)
		writes = append(writes, streamtest.Write{Key: name, Value: streamtest.ValueOf(w.values), Delete: w.oneOf(3)})
	}
	if len(writes) > 0 {
		w.upstream.Commit(1+w.random.Uint64N(3), writes...)
	}
}

func (w *world) disturb() {
	r := w.replica()
	switch w.random.IntN(6) {
	case 0, 1:
		r.Disconnect(streamtest.ErrCut)
	case 2:
		r.Compact()
		r.Disconnect(nil)
	case 3:
		r.CutSnapshot(w.random.IntN(5))
		r.Disconnect(streamtest.ErrCut)
	case 4:
		r.FallBack(w.random.IntN(3))
	case 5:
		w.restore()
	}
}

// restore returns the upstream to a backup; its replicas follow at their own pace.
func (w *world) restore() {
	w.epochs++
	w.upstream.Restore(fmt.Sprintf("e%d", w.epochs), w.upstream.Revision()/2)
}

// client returns a connected client, if there is one.
func (w *world) client() *recorder {
	if len(w.clients) == 0 {
		return nil
	}
	i := w.random.IntN(len(w.clients))
	c := w.clients[i]
	if c.over() {
		w.clients = append(w.clients[:i], w.clients[i+1:]...)
		return nil
	}
	return c
}

// connect opens so many streams at once: from nothing, from any id ever given, or as a client that
// was cut off, with the state that it held then.
func (w *world) connect(together int) {
	n := w.random.IntN(len(w.gateways))
	part := w.parts[w.random.IntN(len(w.parts))]
	old := w.before(part)
	for range together {
		c := &recorder{world: w, part: part, gateway: w.gateways[n], Connection: &streamtest.Connection{
			Client: fmt.Sprintf("client %d", len(w.everyone)), Replica: fmt.Sprint(n), Opened: time.Now(),
		}, gate: make(chan struct{}, 1)}
		if old != nil {
			old.reconnectAs(c, w.random)
		}
		c.state = c.Begin.Clone()
		part.history.Add(c.Connection)
		w.clients, w.everyone = append(w.clients, c), append(w.everyone, c)
		c.open()
	}
}

// before returns a client of that part, if there was one.
func (w *world) before(part *worldPart) *recorder {
	if len(w.everyone) == 0 || w.oneOf(4) {
		return nil
	}
	if c := w.everyone[w.random.IntN(len(w.everyone))]; c.part == part {
		return c
	}
	return nil
}

// settle waits until everything is at rest, and ends the recording.
func (w *world) settle() {
	for _, r := range w.replicas {
		r.Move()
		r.Catch(-1)
	}
	for _, c := range w.everyone {
		c.slow(false)
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	for _, c := range w.everyone {
		c.finish()
	}
	for _, p := range w.parts {
		for i, r := range w.replicas {
			p.history.Freshness[fmt.Sprint(i)] = r.Freshness()
		}
		p.history.Truth, p.history.Settled = p.truth(w.upstream.Truth()), true
	}
}

// recorder is a minimal EventSource that records what it is sent.
type recorder struct {
	*streamtest.Connection
	world   *world
	part    *worldPart
	gateway *rig
	cancel  context.CancelFunc
	gate    chan struct{} // full: the reader waits

	mu     sync.Mutex // guards the following fields, and the Connection
	frames bytes.Buffer
	state  streamtest.State
	mark   *streamtest.Mark
	flush  *streamtest.Flush
	left   int // frames to read before it hangs up; -1: it does not
	ended  bool
}

// reconnectAs gives the next connection the state of this one, or an earlier id of
// it. Changes after the last id are kept only at the same gateway: another one may
// not have got that far.
func (c *recorder) reconnectAs(next *recorder, random *rand.Rand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended && c.mark != nil && c.gateway == next.gateway && random.IntN(2) == 0 {
		next.From, next.Begin = c.mark, c.state.Clone()
		return
	}
	if marks := c.Marks(); len(marks) > 0 {
		next.From = marks[random.IntN(len(marks))]
		next.Begin = next.From.State
	}
}

func (c *recorder) open() {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel, c.left = cancel, -1
	path := "http://gateway/v1/watches/a/events" + c.part.query
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		c.world.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if len(c.world.everyone)%2 == 0 {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	if c.From != nil {
		req.Header.Set("Last-Event-ID", c.part.served(c.From.Position).String())
		c.mark = c.From
	}
	res, err := c.gateway.client.Do(req)
	if err != nil {
		c.world.t.Fatal(err)
	}
	gatewaytest.Unzip(res)
	go c.read(res.Body)
	c.world.t.Cleanup(cancel)
}

// read reads frames as they arrive.
func (c *recorder) read(body io.ReadCloser) {
	defer c.end()
	defer body.Close()
	p := make([]byte, 4<<10)
	for {
		c.gate <- struct{}{}
		<-c.gate
		n, err := body.Read(p)
		if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, new(flate.CorruptInputError)) {
			c.world.t.Errorf("%s: %v", c.Client, err)
		}
		if !c.receive(p[:n]) || err != nil {
			return
		}
	}
}

// receive processes the complete frames. It returns false if the client has
// disconnected.
func (c *recorder) receive(p []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames.Write(p)
	for {
		frame, rest, ok := bytes.Cut(c.frames.Bytes(), []byte("\n\n"))
		if !ok {
			return true
		}
		if c.left == 0 {
			if c.flush != nil {
				c.flush.Cut = true
				c.endFlush()
			}
			return false
		}
		c.left = max(c.left-1, -1)
		c.take(frame)
		c.frames.Next(c.frames.Len() - len(rest))
	}
}

// take processes one frame. An id ends a flush.
func (c *recorder) take(frame []byte) {
	event, id := c.parse(frame)
	if event == nil {
		return
	}
	if c.flush == nil {
		c.beginFlush()
	}
	c.flush.Events = append(c.flush.Events, *event)
	c.state.Apply(*event)
	if event.Type == stream.StatusChange && id == "" {
		c.endFlush() // may be alone
		return
	}
	if id == "" {
		return
	}
	position, err := stream.ParsePosition(id)
	if err != nil {
		c.world.t.Error(err)
	}
	c.world.saw()
	c.mark = &streamtest.Mark{Position: c.part.original(position), State: c.state.Clone()}
	c.flush.Mark = c.mark
	c.endFlush()
}

func (c *recorder) beginFlush() {
	w, _ := c.gateway.Registry.Watch("a")
	w = c.part.of(c.world.t, c.gateway.gateway, w)
	horizon, _ := w.Snapshot().Horizon()
	c.flush = &streamtest.Flush{Order: int(c.world.order.Add(1)), At: time.Now(), Head: w.Snapshot().Revision(), Horizon: horizon}
	if c.Slow {
		c.flush.Head, c.flush.Horizon = 0, ^uint64(0) // their values when the flush was sent are not known
	}
}

func (c *recorder) endFlush() {
	c.Flushes = append(c.Flushes, *c.flush)
	c.flush = nil
}

// parse returns the watch event in a frame, if there is one, and its id.
func (c *recorder) parse(frame []byte) (*stream.Event, string) {
	var id string
	var data []byte
	for line := range bytes.SplitSeq(frame, []byte("\n")) {
		if v, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			id = string(v)
		}
		if v, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			data = v
		}
	}
	if data == nil {
		return nil, id
	}
	var d struct {
		Type, Key, Reason, State string
		Revision                 uint64 `json:",string"`
		Value                    json.RawMessage
		Count                    int
		Resumed                  bool
		Skipped                  uint64
		Since                    time.Time
	}
	if err := json.Unmarshal(data, &d); err != nil {
		c.world.t.Errorf("%s: %v", data, err)
	}
	for t := stream.Reset; t <= stream.StatusChange; t++ {
		if t.String() != d.Type {
			continue
		}
		state, _ := stream.ParseState(d.State)
		return &stream.Event{
			Type: t, Watch: "a", Resource: stream.Resource{Key: d.Key, Revision: d.Revision, Value: d.Value},
			Reason: d.Reason, Revision: d.Revision, Count: d.Count, Resumed: d.Resumed, Skipped: d.Skipped,
			State: state, Since: d.Since,
		}, id
	}
	return nil, id
}

// slow makes the client stop reading, or resume.
func (c *recorder) slow(stop bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stop {
		c.Slow = true
		select {
		case c.gate <- struct{}{}:
		default:
		}
		return
	}
	select {
	case <-c.gate:
	default:
	}
}

// hangUpAfter makes the client disconnect after that many more frames, or at
// once.
func (c *recorder) hangUpAfter(frames int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if frames == 0 {
		c.cancel()
		return
	}
	c.left = frames
}

func (c *recorder) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// end records that the connection is over.
func (c *recorder) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.flush != nil {
		c.flush.Cut = true
		c.endFlush()
	}
	c.Closed, c.Read = time.Now(), time.Now()
}

// finish ends the recording.
func (c *recorder) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flush != nil {
		c.endFlush()
	}
	if !c.ended {
		c.Read = time.Now()
	}
}
