package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// streaming is the state of the stream of changes.
type streaming struct {
	replication
	begin     transaction // under way
	touched   []*member   // that the transaction has changes for
	relations map[uint32]*relation
	confirmed uint64 // everything before has been handed on
	told      uint64 // the last progress that members were told of
	toldAt    time.Time
	heard     time.Time // when the server last sent something
	asked     time.Time // when it was last asked for an answer
}

// transaction is what a transaction of the stream begins with.
type transaction struct {
	lsn uint64
	at  time.Time
}

// stream connects and follows a slot until it fails.
func (s *session) stream() error {
	c := &s.upstream.config
	conn, err := c.connect(s.ctx, true)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	s.replication, s.streaming.relations = replication{conn, c}, map[uint32]*relation{}
	if err := s.prepare(); err != nil {
		return err
	}
	close(s.ready)
	if err := s.await(c.StallAfter); err != nil {
		return err
	}
	ctx, cancel := c.limit(s.ctx)
	defer cancel()
	if err := s.start(ctx, s.slotName, s.from, c.Publication); err != nil {
		return err
	}
	s.confirmed, s.heard = s.from, time.Now()
	for {
		if err := s.step(); err != nil {
			return err
		}
	}
}

// prepare checks the server, and finds or makes the slot.
func (s *session) prepare() error {
	c := &s.upstream.config
	// A connection for replication takes simple queries only, so another one asks.
	conn, err := c.connect(s.ctx, false)
	if err != nil {
		return err
	}
	s.queries = &queries{conn, c}
	if _, err := checkServer(s.ctx, *s.queries, s.tables()...); err != nil {
		return err
	}
	if err := createPublication(s.ctx, *s.queries); err != nil {
		return err
	}
	if err := checkPublication(s.ctx, *s.queries, c.Publication, s.tables()...); err != nil {
		return err
	}
	ctx, cancel := c.limit(s.ctx)
	defer cancel()
	if s.system, s.head, err = s.identify(ctx); err != nil {
		return err
	}
	var made slot
	if c.Slot != "" {
		made, err = s.permanent(s.ctx)
		s.upstream.sender.Store(s.conn.PID())
	} else {
		made, err = s.newSlot(s.ctx, slotOptions{temporary: true})
	}
	s.slotName, s.from, s.catalog = made.name, made.point, made.catalog
	return err
}

// safe is the place before which nothing is needed again.
func (s *session) safe() uint64 {
	s.upstream.mu.Lock()
	defer s.upstream.mu.Unlock()
	at := s.confirmed
	if s.catalog == "" {
		return at // nothing goes on with a temporary slot
	}
	for _, m := range s.members {
		if known := m.safe.Load(); known > 0 {
			at = min(at, known)
		}
	}
	return at
}

// tell confirms what is safe.
func (s *session) tell(ask bool) error { return s.confirm(s.confirmed, s.safe(), ask) }

// step waits for the next message and handles it.
func (s *session) step() error {
	every := s.upstream.config.StallAfter / 3
	if err := s.pulse(every); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(s.ctx, s.asked.Add(every))
	defer cancel()
	r, err := s.receive(ctx)
	if err != nil || r == nil {
		return err
	}
	s.heard = time.Now()
	if len(r.message) > 0 {
		return s.handle(r.message)
	}
	if r.end > 0 && s.begin.lsn == 0 {
		s.confirmed = max(s.confirmed, r.end)
		s.progress(s.confirmed - 1)
	}
	if r.reply {
		return s.tell(false)
	}
	return nil
}

// pulse asks the server for an answer now and then, also one that would never ask for ours, and gives
// up one that does not answer.
func (s *session) pulse(every time.Duration) error {
	now := time.Now()
	if now.Sub(s.heard) >= s.upstream.config.StallAfter {
		return s.upstream.config.stalled()
	}
	if now.Sub(s.asked) < every {
		return nil
	}
	s.asked = now
	return s.tell(true)
}

// handle handles a message of pgoutput.
func (s *session) handle(message []byte) error {
	switch message[0] {
	case msgBegin:
		lsn, at, err := decodeBegin(message)
		s.begin = transaction{lsn, at}
		s.setWithin(true, lsn)
		return err
	case msgCommit:
		return s.commit(message)
	case msgRelation:
		r, err := decodeRelation(message)
		if err == nil {
			s.relations[r.id] = r
		}
		return err
	case msgInsert, msgUpdate, msgDelete:
		id, err := relationOf(message)
		if err != nil {
			return err
		}
		return s.pass(id, message)
	case msgTruncate:
		ids, err := truncated(message)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := s.pass(id, message[:1]); err != nil {
				return err
			}
		}
	}
	return nil // others carry nothing that is served
}

// setWithin records that a transaction begins, or ends.
func (s *session) setWithin(within bool, lsn uint64) {
	s.upstream.mu.Lock()
	defer s.upstream.mu.Unlock()
	s.within, s.latest = within, max(s.latest, lsn)
	if !within {
		for _, m := range s.members {
			m.late = false
		}
	}
}

// followers returns the members that get the changes of a relation.
func (s *session) followers(id uint32) (all []*member) {
	s.upstream.mu.Lock()
	defer s.upstream.mu.Unlock()
	for _, m := range s.followed[id] {
		if !m.late {
			all = append(all, m)
		}
	}
	return all
}

// pass hands a change of a relation to the members that follow it.
func (s *session) pass(id uint32, message []byte) error {
	if s.begin.lsn == 0 {
		return fmt.Errorf("%w: a change outside of a transaction", stream.ErrInvalid)
	}
	members := s.followers(id)
	if len(members) == 0 {
		return nil
	}
	if s.relations[id] == nil && message[0] != msgTruncate {
		return fmt.Errorf("%w: a change of a table that was not described", stream.ErrInvalid)
	}
	e := event{transaction: s.begin, id: id, relation: s.relations[id], message: slices.Clone(message)}
	for _, m := range members {
		m.queue.push(e)
		if !slices.Contains(s.touched, m) {
			s.touched = append(s.touched, m)
		}
		if err := s.relieve(m); err != nil {
			return err
		}
	}
	return nil
}

// relieve waits while a member that is up to date has a long queue. The server stays informed meanwhile.
func (s *session) relieve(m *member) error {
	every := s.upstream.config.StallAfter / 3
	for m.queue.crowded() {
		timer := time.NewTimer(every)
		select {
		case <-m.queue.room:
		case <-timer.C:
			s.heard = time.Now() // it was not listened to
			if err := s.tell(false); err != nil {
				timer.Stop()
				return err
			}
		case <-s.ctx.Done():
		}
		timer.Stop()
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
	}
	return nil
}

// commit ends a transaction.
func (s *session) commit(message []byte) error {
	lsn, end, err := decodeCommit(message)
	switch {
	case err != nil:
		return err
	case s.begin.lsn == 0 || lsn != s.begin.lsn || end <= lsn:
		return fmt.Errorf("%w: a commit at %d that ends at %d, of the transaction at %d", stream.ErrInvalid, lsn, end, s.begin.lsn)
	}
	for _, m := range s.touched {
		m.queue.push(event{transaction: s.begin, commit: true})
	}
	s.confirmed, s.begin, s.touched = max(s.confirmed, end), transaction{}, nil
	s.setWithin(false, lsn)
	s.progress(s.confirmed - 1)
	return nil
}

// progressEvery is the least time from one progress that members are told of to the next.
const progressEvery = time.Second

// progress tells the members that everything up to a revision has been handed on.
func (s *session) progress(lsn uint64) {
	now := time.Now()
	reached := s.told+1 < s.head && lsn+1 >= s.head // a table that goes on waits for that
	if lsn <= s.told || now.Sub(s.toldAt) < progressEvery && !reached {
		return
	}
	s.told, s.toldAt = lsn, now
	s.upstream.mu.Lock()
	members := slices.Clone(s.members)
	s.upstream.mu.Unlock()
	for _, m := range members {
		m.queue.push(event{transaction: transaction{lsn: lsn}, commit: true, progress: true})
	}
}
