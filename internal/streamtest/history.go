package streamtest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
)

// History is the history of an upstream and of its subscribers: the input of the
// checkers. Any goroutine may add connections; the rest is set before the history
// begins, and read after it has ended.
type History struct {
	// Truth is the upstream's history.
	Truth *Truth
	// Freshness is, for each replica of the gateway, when its upstream was
	// fresh and when it was not. A replica that is missing is not checked.
	Freshness map[string][]Freshness
	// Heartbeat is how soon a subscriber must be able to distinguish fresh from
	// stale.
	Heartbeat time.Duration
	// StaleAfter is how long a lost upstream may go unreported.
	StaleAfter time.Duration
	// DeletesUnnumbered means that the upstream gives deletes no revision of their
	// own, so that a replica cannot resume all the ids that it issued.
	DeletesUnnumbered bool
	// Hides means that subscribers must not learn what Truth, the truth of a part, leaves out.
	// All bytes that they are sent are searched for markers; see [Marker].
	Hides bool
	// ViewsBounded means that views have a limit of memory, so that a view may lose what a
	// subscriber that catches up with it still needs.
	ViewsBounded bool
	// Sees is what subscribers may see, if that is more than Truth, that of a window; nil: it is Truth.
	Sees *Truth
	// Window means that Truth is that of a window, so that resources enter with older revisions.
	Window bool
	// Groups means that Truth is that of counts, of which it does not know the revisions of the groups.
	Groups bool
	// Large is the number of bytes from which a transaction may take several flushes: 1 MiB by
	// default.
	Large int
	// Settled means that at the end every replica had everything from the upstream,
	// and every open connection had been read to its end.
	Settled bool

	mu          sync.Mutex
	order       int
	connections []*Connection
	answers     []Answer
}

// Answer is the answer to a reader that asked for the state.
type Answer struct {
	// Epoch and Revision are those of the state.
	Epoch    string
	Revision uint64
	// Sent has all bytes that were sent.
	Sent []byte
}

// Answered adds an answer.
func (h *History) Answered(a Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = append(h.answers, a)
}

// Connection is one subscription, from its beginning to its end, as its
// subscriber saw it. It is owned by one goroutine until it is checked.
type Connection struct {
	// Client and Replica are the names of the two ends. A replica of the gateway
	// that was restarted is another one.
	Client, Replica string
	// Slow means that the subscriber does not read at once.
	Slow bool
	// From is the id that the connection resumed from; nil: from nothing.
	From *Mark
	// Begin is the subscriber's state at the start: the state of From, or more if
	// events followed the id and it applies each at once.
	Begin State
	// Ahead is the position of the replica that sent the events after the id: a
	// replica that is not there yet does not have them.
	Ahead uint64
	// Mixed means that the state that the replica serves, or that the id is of, may
	// have been made at two replicas, one after the other, inside a snapshot or a
	// catch-up.
	Mixed bool
	// OfView means that the replica follows a view of another gateway. When the replica
	// reconnects, that gateway may not know whether a resource that changed meanwhile was in
	// the view, and then sends its delete.
	OfView bool
	// MinRate is how many bytes a second the subscriber must take to keep the state that it
	// is sent; not positive: there is no minimum.
	MinRate int64
	// Interval is how often the subscriber wants changes at most: changes between two ids are like those of
	// a catch-up, without a status. 0: as they come.
	Interval time.Duration
	// Opened and Closed are when; Closed is zero while it is open.
	Opened, Closed time.Time
	// Read is when the subscriber last looked for something to read.
	Read time.Time
	// Flushes are the received flushes.
	Flushes []Flush

	window bool // of the history
	reader
}

// Flush is a set of events received at once.
type Flush struct {
	// Order is the index among all flushes of the history.
	Order int
	// At is when.
	At time.Time
	// Head is that of the replica just before, and Horizon just after: it may have risen meanwhile.
	Horizon, Head uint64
	// Events are the sent events.
	Events []stream.Event
	// Mark is the id that was sent with the last event; nil: none was.
	Mark *Mark
	// Cut means that the connection broke inside the flush.
	Cut bool

	after    uint64    // the head of the replica just after
	bytes    int       // about, on the wire; 0: unknown
	boundary bool      // an id was sent with the last event, unless the flush was cut
	markers  []string  // in all bytes of the flush, if the history hides something
	versions []Version // of the upserts among Events, computed on demand
}

// version returns the version of the i-th event, an upsert.
func (f *Flush) version(i int) Version {
	if f.versions == nil {
		f.versions = make([]Version, len(f.Events))
	}
	if v := &f.versions[i]; v.Revision == 0 {
		*v = versionOf(f.Events[i].Resource)
	}
	return f.versions[i]
}

// apply applies the i-th event to a state.
func (f *Flush) apply(s State, i int) {
	s.apply(&f.Events[i], func(stream.Resource) Version { return f.version(i) })
}

// Mark is an id, and the subscriber's state when it received it.
type Mark struct {
	Position stream.Position
	State    State
	// Consistent means that the subscriber says that it has exactly a state that the upstream
	// had. Revision is the one that it names; 0: none.
	Consistent bool
	Revision   uint64

	lead  lead // what the subscriber may hold beyond the id
	mixed bool // of the connection
}

// Exact reports whether the subscriber held exactly the state of the id.
func (m *Mark) Exact() bool { return len(m.lead) == 0 }

// Connections returns the connections so far, in the order of their start.
func (h *History) Connections() []*Connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*Connection(nil), h.connections...)
}

// Add adds a connection.
func (h *History) Add(c *Connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.connections = append(h.connections, c)
}

func (h *History) nextOrder() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.order++
	return h.order
}

// Checks are the checkers, by the names of the guarantees.
var Checks = []struct {
	Name  string
	Check func(*History) error
}{
	{"Consistent", CheckConsistent},
	{"Gapless", CheckGapless},
	{"Ordered", CheckOrdered},
	{"Atomic", CheckAtomic},
	{"Resumable", CheckResumable},
	{"Conflating", CheckConflating},
	{"Resynchronising", CheckResynchronising},
	{"Fresh", CheckFresh},
	{"Monotonic", CheckMonotonic},
	{"Confidential", CheckConfidential},
}

// CheckAll returns the errors of all checkers and of the recorder itself.
func CheckAll(h *History) error {
	var errs []error
	for _, c := range h.Connections() {
		errs = append(errs, c.broken...)
	}
	for _, c := range Checks {
		errs = append(errs, c.Check(h))
	}
	return errors.Join(errs...)
}

// String names a connection in an error.
func (c *Connection) String() string {
	from := "nothing"
	if c.From != nil {
		from = c.From.Position.String()
	}
	return fmt.Sprintf("%s at %s, opened %s from %s", c.Client, c.Replica,
		c.Opened.UTC().Format("15:04:05.000"), from)
}

// Describe describes a connection event by event, for the log of a failed test.
func (c *Connection) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n", c)
	for _, f := range c.Flushes {
		fmt.Fprintf(&b, "  #%d %s (head %d, horizon %d)\n", f.Order, f.At.UTC().Format("15:04:05.000"), f.Head, f.Horizon)
		for _, e := range f.Events {
			fmt.Fprintf(&b, "    %s\n", describe(e))
		}
		if f.Mark != nil {
			fmt.Fprintf(&b, "    id %v\n", f.Mark.Position)
		}
	}
	return b.String()
}

func describe(e stream.Event) string {
	data := frame.AppendData(nil, e)
	if len(data) > 130 {
		data = append(data[:130], "…"...)
	}
	return string(data)
}
