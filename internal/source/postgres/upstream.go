package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Upstream is one database. The sources of its watches share a replication connection and its slot.
//
// Source may be called by any goroutine, and each source be watched by one.
type Upstream struct {
	// Static after construction.
	config Config
	name   string // for messages
	user   string

	// readers is full while as many tables are read as may be at once, and exporter while one of
	// them makes its snapshot.
	readers, exporter chan struct{}

	// Atomic.
	sender   atomic.Uint32 // the server process of the last connection for replication
	retained atomic.Int64  // bytes of WAL that the server keeps for the slot; negative: it is not known

	mu         sync.Mutex           // guards the following fields, and those of sessions
	session    *session             // nil: no watch runs
	continuing map[*Source]struct{} // what may go on with a permanent slot
}

// maxReaders is how many tables are read at once.
const maxReaders = 4

// New returns a database. It connects when one of its sources is watched. The error reports an invalid
// configuration.
func New(c Config) (*Upstream, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.setDefaults()
	parsed, err := pgconn.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("postgres: url: %w", err)
	}
	u := &Upstream{
		continuing: map[*Source]struct{}{},
		config:     c, user: parsed.User, name: fmt.Sprintf("%s:%d/%s", parsed.Host, parsed.Port, parsed.Database),
		readers: make(chan struct{}, maxReaders), exporter: make(chan struct{}, 1),
	}
	u.retained.Store(-1)
	return u, nil
}

// Source returns the source of a table.
func (u *Upstream) Source(t Table) (*Source, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	return &Source{upstream: u, table: t, keeper: newKeeper()}, nil
}

// tables returns the tables of the members of a session.
func (s *session) tables() (all []Table) {
	s.upstream.mu.Lock()
	defer s.upstream.mu.Unlock()
	for _, m := range s.members {
		all = append(all, m.table)
	}
	return all
}

// join adds a member to the session, which it begins if there is none, and waits until it is about to
// stream.
func (u *Upstream) join(ctx context.Context, m *member) (*session, error) {
	u.mu.Lock()
	s := u.session
	if s == nil {
		s = newSession(u)
		s.awaited = maps.Clone(u.continuing)
		u.session = s
		go s.run()
	}
	s.members = append(s.members, m)
	u.mu.Unlock()
	select {
	case <-s.ready:
	case <-ctx.Done():
	}
	if cause := context.Cause(ctx); cause != nil {
		s.leave(m)
		return nil, cause
	}
	return s, nil
}

// session is the replication connection while it lasts, and what the watches share beside it. It ends
// when the connection is lost, and with its last member.
type session struct {
	// Static after construction.
	upstream *Upstream
	ctx      context.Context
	cancel   context.CancelCauseFunc
	ready    chan struct{} // closed when it is about to stream
	done     chan struct{} // closed when run has returned
	joined   chan struct{} // has an element if nothing may be awaited any longer

	// Written before ready is closed, read after.
	system   system
	slotName string
	catalog  string // of a permanent slot, the oldest transaction of the catalog that it needs; else empty
	from     uint64 // transactions that commit from here on are sent
	head     uint64 // where the WAL ended then

	// checking is full while the following fields are in use.
	checking chan struct{}
	queries  *queries  // a connection for checks; nil: there is none
	looked   time.Time // when the slots were last looked at

	// Guarded by upstream.mu.
	over     bool
	members  []*member
	followed map[uint32][]*member // by the relations whose changes they get
	within   bool                 // the stream is inside a transaction
	latest   uint64               // the last transaction that the stream has begun
	awaited  map[*Source]struct{} // what may go on, and has not joined yet

	streaming // owned by run
}

func newSession(u *Upstream) *session {
	s := &session{
		upstream: u, ready: make(chan struct{}), done: make(chan struct{}), joined: make(chan struct{}, 1), checking: make(chan struct{}, 1),
		followed: map[uint32][]*member{},
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// run streams until the session is over.
func (s *session) run() {
	defer close(s.done)
	err := s.upstream.failed(because(s.ctx, s.stream()))
	if errors.Is(err, errGivenUp) || unpublished(err) {
		s.giveUp()
	}
	s.upstream.retained.Store(-1)
	s.upstream.mu.Lock()
	members := s.members
	s.endLocked()
	s.upstream.mu.Unlock()
	s.cancel(err)
	for _, m := range members {
		m.end(err)
	}
	s.checking <- struct{}{} // no check is under way, nor will one be
	if s.queries != nil {
		closeConn(s.queries.PgConn)
	}
}

// endLocked closes the session for new members. upstream.mu is held.
func (s *session) endLocked() {
	s.over = true
	if s.upstream.session == s {
		s.upstream.session = nil
	}
}

// leave removes a member, which gets nothing any longer. If it was the last one, leave returns once the
// session has no goroutine left.
func (s *session) leave(m *member) {
	m.queue.close()
	s.upstream.mu.Lock()
	s.members = without(s.members, m)
	for id, all := range s.followed {
		if s.followed[id] = without(all, m); len(s.followed[id]) == 0 {
			delete(s.followed, id)
		}
	}
	last := len(s.members) == 0
	if last {
		s.endLocked()
	}
	s.upstream.mu.Unlock()
	if last {
		s.cancel(context.Canceled)
		<-s.done
	}
}

// settle says that the stream need not wait for a source any longer.
func (s *session) settle(source *Source) {
	s.upstream.mu.Lock()
	defer s.upstream.mu.Unlock()
	delete(s.awaited, source)
	if len(s.awaited) == 0 {
		wake(s.joined)
	}
}

// await waits for the sources that go on where they were, before the stream begins: what it has passed is
// not sent again. One that does not come in time reads its table.
func (s *session) await(within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for late := false; ; {
		s.upstream.mu.Lock()
		if late {
			for source := range s.awaited {
				delete(s.upstream.continuing, source)
			}
			clear(s.awaited)
		}
		waits := len(s.awaited) > 0
		s.upstream.mu.Unlock()
		if !waits {
			return nil
		}
		select {
		case <-s.joined:
		case <-timer.C:
			late = true
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

// continues records whether a source has something with which it can go on, if the slot is permanent.
func (u *Upstream) continues(source *Source, has bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if has && u.config.Slot != "" {
		u.continuing[source] = struct{}{}
	} else {
		delete(u.continuing, source)
	}
}

func without(members []*member, m *member) []*member {
	return slices.DeleteFunc(slices.Clone(members), func(o *member) bool { return o == m })
}

// follow passes the changes of relations on to a member, beginning with the next transaction of the
// stream. It returns the last transaction that has begun before.
func (s *session) follow(m *member, relations []uint32) (latest uint64) {
	s.upstream.mu.Lock()
	defer s.upstream.mu.Unlock()
	m.late = s.within
	for _, id := range relations {
		s.followed[id] = append(slices.Clone(s.followed[id]), m)
	}
	return s.latest
}

// check describes a table, over a connection that all members use.
func (s *session) check(ctx context.Context, t Table) (d *described, err error) {
	err = s.ask(ctx, func(conn queries) error {
		if d, err = describe(ctx, conn, t, s.upstream.config.Publication); err != nil {
			return err
		}
		return s.look(ctx)
	})
	return d, err
}

// settled is described.settled, for the slot of the session.
func (s *session) settled(ctx context.Context, d *described) (ok bool, err error) {
	err = s.ask(ctx, func(conn queries) error {
		ok, err = d.settled(ctx, conn, s.upstream.config.Publication, s.catalog)
		return err
	})
	return ok, err
}

// ask calls a function with the connection for checks.
func (s *session) ask(ctx context.Context, fn func(queries) error) error {
	if err := acquire(ctx, s.checking); err != nil {
		return err
	}
	defer func() { <-s.checking }()
	c := &s.upstream.config
	if s.queries != nil && s.queries.IsClosed() {
		closeConn(s.queries.PgConn)
		s.queries = nil
	}
	if s.queries == nil {
		conn, err := c.connect(ctx, false)
		if err != nil {
			return err
		}
		s.queries = &queries{conn, c}
	}
	return fn(*s.queries)
}
