package netconn

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/limits"
)

// HandshakeResult says how a TLS handshake ended.
type HandshakeResult string

// The results of a handshake.
const (
	HandshakeCompleted HandshakeResult = "completed"
	HandshakeFailed    HandshakeResult = "failed"    // the client left, or said something wrong
	HandshakeLate      HandshakeResult = "late"      // it took longer than HandshakeTimeout
	HandshakeRefused   HandshakeResult = "refused"   // the client had too many already
	HandshakeDisplaced HandshakeResult = "displaced" // there were too many, and it was the one that had lasted longest
)

// HandshakeResults are all of them.
var HandshakeResults = [...]HandshakeResult{HandshakeCompleted, HandshakeFailed, HandshakeLate, HandshakeRefused, HandshakeDisplaced}

const (
	// HandshakeTimeout is how long a TLS handshake may take.
	HandshakeTimeout = 10 * time.Second
	// handshakeBytes is how many bytes a client may send in its handshake. A long chain of
	// certificates has 20 KiB.
	handshakeBytes = 64 << 10
	// connectionShare is the part of all connections that handshakes may have, as a divisor.
	connectionShare = 2
)

// Handshakes bounds the TLS handshakes of clients: their number in all and for each client, their
// time, and their share of the processors. If there are too many in all, the one that has lasted longest is
// ended, since an honest one is short.
//
// All methods may be called from any goroutine.
type Handshakes struct {
	// Static after construction.
	trusted     func(netip.Addr) bool // whether an address stands for many clients
	connections *Connections
	turns       *limits.Budget // of handshakes that compute now; each takes 1, not bytes

	mu            sync.Mutex // guards the following fields
	most, perPeer int
	open          list.List // of *Handshake: the oldest in front
	of            map[limits.Client]int
	results       map[HandshakeResult]uint64
}

// NewHandshakes returns the limits of handshakes. Half of the processors are for other work. Addresses that are trusted
// are limited together with all others, but not one by one.
func NewHandshakes(most, perClient int, trusted func(netip.Addr) bool, connections *Connections) *Handshakes {
	turns := int64(max(1, runtime.GOMAXPROCS(0)/2))
	return &Handshakes{
		trusted: trusted, connections: connections, turns: limits.NewSharedBudget(turns, turns),
		most: most, perPeer: perClient, of: map[limits.Client]int{}, results: map[HandshakeResult]uint64{},
	}
}

// Reconfigure changes how many handshakes there may be, in all and for each client.
func (h *Handshakes) Reconfigure(most, perClient int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.most, h.perPeer = most, perClient
}

// Count returns how many handshakes there are.
func (h *Handshakes) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open.Len()
}

// Ended returns how many handshakes have ended with a result.
func (h *Handshakes) Ended(r HandshakeResult) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.results[r]
}

// Handshake is one TLS handshake. While it waits for its client, it has no turn to compute.
//
// Owned by the goroutine that does it.
type Handshake struct {
	// Static after construction.
	of     *Handshakes
	conn   *StallTimeoutConn
	client limits.Client
	ctx    context.Context // ends with the time for it
	cancel context.CancelFunc

	turn  *limits.Claim // nil: it may not compute
	heard int           // bytes

	place     *list.Element // guarded by the mutex of Handshakes; nil: it is not counted
	displaced bool          // guarded by the mutex of Handshakes
}

var (
	errManyHandshakes = errors.New("the client has too many TLS handshakes that have not ended")
	errLongHandshake  = errors.New("the client sends too many bytes in its TLS handshake")
	errDisplaced      = errors.New("there were too many TLS handshakes, and this one had lasted longest")
)

// Begin begins the handshake of a connection, which must end, and ends with a context at the latest. An error
// means that there may be none.
func (h *Handshakes) Begin(ctx context.Context, conn *StallTimeoutConn) (*Handshake, error) {
	peer := limits.PeerAddress(conn.RemoteAddr().String()).Addr()
	client := limits.ClientOf(peer)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[client] >= h.perPeer && !h.trusted(peer) {
		h.results[HandshakeRefused]++
		return nil, errManyHandshakes
	}
	for h.open.Len() >= h.mostNow() {
		h.displace(h.open.Front().Value.(*Handshake))
	}
	one := &Handshake{of: h, conn: conn, client: client}
	one.ctx, one.cancel = context.WithTimeout(ctx, HandshakeTimeout)
	one.place = h.open.PushBack(one)
	h.of[client]++
	conn.handshake = one
	return one, nil
}

// mostNow returns how many handshakes there may be: other connections need room too.
func (h *Handshakes) mostNow() int {
	if h.connections == nil {
		return h.most
	}
	_, connections := h.connections.Now()
	return max(1, min(h.most, connections/connectionShare))
}

// displace ends a handshake in favour of another one. The mutex must be held.
func (h *Handshakes) displace(one *Handshake) {
	one.displaced = true
	h.remove(one)
	one.cancel()
	one.conn.Conn.Close() // wakes whoever reads or writes
}

// remove no longer counts a handshake. The mutex must be held.
func (h *Handshakes) remove(one *Handshake) {
	if one.place == nil {
		return
	}
	h.open.Remove(one.place)
	one.place = nil
	if h.of[one.client]--; h.of[one.client] == 0 {
		delete(h.of, one.client)
	}
}

// Context ends when the handshake has to.
func (h *Handshake) Context() context.Context { return h.ctx }

// End ends the handshake with its error. It returns why it has ended, if there is a better reason.
func (h *Handshake) End(err error) error {
	h.conn.handshake = nil
	h.yield()
	late := errors.Is(h.ctx.Err(), context.DeadlineExceeded)
	h.cancel()
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.of.remove(h)
	result := HandshakeCompleted
	switch {
	case h.displaced:
		result, err = HandshakeDisplaced, errDisplaced
	case err != nil && late:
		result, err = HandshakeLate, context.DeadlineExceeded
	case err != nil:
		result = HandshakeFailed
	}
	h.of.results[result]++
	return err
}

// await waits for a turn to compute. Clients take turns, however many handshakes each has.
func (h *Handshake) await() (err error) {
	h.turn, err = h.of.turns.Take(h.ctx, h.client, 1)
	return err
}

// yield gives the turn back, if there is one.
func (h *Handshake) yield() {
	h.turn.Release()
	h.turn = nil
}

// read reads from the client, without a turn, and waits for one.
func (h *Handshake) read(from net.Conn, p []byte) (int, error) {
	h.yield()
	n, err := from.Read(p)
	if err != nil {
		return n, err
	}
	if h.heard += n; h.heard > handshakeBytes {
		return 0, errLongHandshake
	}
	return n, h.await()
}

// write writes to the client, without a turn, and waits for one.
func (h *Handshake) write(write func([]byte) (int, error), p []byte) (int, error) {
	h.yield()
	n, err := write(p)
	if err == nil {
		err = h.await()
	}
	return n, err
}
