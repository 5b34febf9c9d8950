package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"

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

	mu      sync.Mutex // guards the following field, and those of sessions
	session *session   // nil: no watch runs
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
	return &Upstream{
		config: c, user: parsed.User, name: fmt.Sprintf("%s:%d/%s", parsed.Host, parsed.Port, parsed.Database),
		readers: make(chan struct{}, maxReaders), exporter: make(chan struct{}, 1),
	}, nil
}

// Source returns the source of a table.
func (u *Upstream) Source(t Table) (*Source, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	return &Source{upstream: u, table: t}, nil
}

// join adds a member to the session, which it begins if there is none, and waits until it streams.
func (u *Upstream) join(ctx context.Context, m *member) (*session, error) {
	u.mu.Lock()
	s := u.session
	if s == nil {
		s = newSession(u)
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
	ready    chan struct{} // closed when it streams
	done     chan struct{} // closed when run has returned

	// Written before ready is closed, read after.
	system system

	// checking is full while queries is in use, a connection for checks; nil: there is none.
	checking chan struct{}
	queries  *queries

	// Guarded by upstream.mu.
	over     bool
	members  []*member
	followed map[uint32][]*member // by the relations whose changes they get
	within   bool                 // the stream is inside a transaction

	streaming // owned by run
}

func newSession(u *Upstream) *session {
	s := &session{
		upstream: u, ready: make(chan struct{}), done: make(chan struct{}), checking: make(chan struct{}, 1),
		followed: map[uint32][]*member{},
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// run streams until the session is over.
func (s *session) run() {
	defer close(s.done)
	err := s.upstream.failed(because(s.ctx, s.stream()))
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

func without(members []*member, m *member) []*member {
	return slices.DeleteFunc(slices.Clone(members), func(o *member) bool { return o == m })
}

// follow passes the changes of relations on to a member, beginning with the next transaction of the
// stream.
func (s *session) follow(m *member, relations []uint32) {
	s.upstream.mu.Lock()
	defer s.upstream.mu.Unlock()
	m.late = s.within
	for _, id := range relations {
		s.followed[id] = append(slices.Clone(s.followed[id]), m)
	}
}

// check describes a table, over a connection that all members use.
func (s *session) check(ctx context.Context, t Table) (*described, error) {
	select {
	case s.checking <- struct{}{}:
		defer func() { <-s.checking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c := &s.upstream.config
	if s.queries != nil && s.queries.IsClosed() {
		closeConn(s.queries.PgConn)
		s.queries = nil
	}
	if s.queries == nil {
		conn, err := c.connect(ctx, false)
		if err != nil {
			return nil, err
		}
		s.queries = &queries{conn, c}
	}
	return describe(ctx, *s.queries, t, c.Publication)
}
