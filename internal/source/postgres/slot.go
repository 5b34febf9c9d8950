package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/watchtide/watchtide/stream"
)

// errGivenUp means that the server keeps too much WAL for a slot.
var errGivenUp = errors.New("the slot is given up")

// kept is a permanent slot as the server has it. Servers of different versions have different columns.
type kept struct {
	Plugin       string `json:"plugin"`
	Database     string `json:"database"`
	Temporary    bool   `json:"temporary"`
	ActivePID    uint32 `json:"active_pid"`
	RestartLSN   string `json:"restart_lsn"`
	Confirmed    string `json:"confirmed_flush_lsn"`
	CatalogXmin  string `json:"catalog_xmin"`
	WALStatus    string `json:"wal_status"`
	Conflicting  bool   `json:"conflicting"`         // from 16
	Invalidation string `json:"invalidation_reason"` // from 17
	Failover     bool   `json:"failover"`            // from 17

	retained int64 // bytes of WAL that the server keeps for it
	here     bool  // it is a slot of the database of the session
}

// findSlot returns a slot; nil: there is none.
func findSlot(ctx context.Context, conn queries, name string) (*kept, error) {
	rows, err := conn.query(ctx, `SELECT to_jsonb(s), pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::bigint, s.database = current_database()
		FROM pg_replication_slots s WHERE slot_name = $1`, name)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	k := &kept{here: isTrue(rows[0][2])}
	if err := json.Unmarshal([]byte(rows[0][0]), k); err != nil {
		return nil, fmt.Errorf("the slot %q: %w", name, err)
	}
	k.retained, _ = strconv.ParseInt(rows[0][1], 10, 64) // empty: it keeps nothing any longer
	return k, nil
}

// foreign reports a slot that is not one that the gateway could have made.
func (k *kept) foreign(name string) error {
	switch {
	case k.Plugin != "pgoutput" || k.Temporary:
		return fmt.Errorf("the slot %q is not a permanent one of the plugin pgoutput: want another name in slot", name)
	case !k.here:
		return fmt.Errorf("the slot %q is of the database %q: want another name in slot", name, k.Database)
	}
	return nil
}

// lost says why the slot does not have all changes, or has to be given up; empty: it can be used.
func (k *kept) lost(limit int64) string {
	switch {
	case k.Invalidation != "":
		return "the server has invalidated it: " + k.Invalidation
	case k.WALStatus == "lost" || k.Conflicting || k.RestartLSN == "" || k.Confirmed == "":
		return "the server has removed WAL that it needs: wal_status is " + strconv.Quote(k.WALStatus)
	case k.retained > limit:
		return tooMuch(k.retained, limit)
	}
	return ""
}

func tooMuch(retained, limit int64) string {
	return fmt.Sprintf("the server keeps %d bytes of WAL for it, and max_retained_wal is %d", retained, limit)
}

// permanent returns the slot that the configuration names. It is made if there is none, or one that does
// not have all changes: then every table is read.
func (s *session) permanent(ctx context.Context) (slot, error) {
	c := &s.upstream.config
	known, err := findSlot(ctx, *s.queries, c.Slot)
	if err != nil {
		return slot{}, err
	}
	if known != nil {
		if err := known.foreign(c.Slot); err != nil {
			return slot{}, err
		}
		if err := s.free(ctx, known.ActivePID); err != nil {
			return slot{}, err
		}
		if why := known.lost(c.MaxRetainedWAL); why != "" {
			c.Logger.Warn("the replication slot is made again, and tables are read again", "slot", c.Slot, "because", why)
			if err := s.drop(ctx); err != nil {
				return slot{}, err
			}
			known = nil
		}
	}
	if known == nil {
		if _, err := s.newSlot(ctx, slotOptions{name: c.Slot, failover: c.Failover}); err != nil {
			return slot{}, err
		}
		c.Logger.Info("made a permanent replication slot", "slot", c.Slot, "failover", c.Failover)
		if known, err = findSlot(ctx, *s.queries, c.Slot); err != nil {
			return slot{}, err
		}
		if known == nil {
			return slot{}, fmt.Errorf("the slot %q was dropped as soon as it was made", c.Slot)
		}
	}
	if c.Failover && !known.Failover {
		if err := s.setFailover(ctx, c.Slot); err != nil {
			return slot{}, err
		}
	}
	point, err := pglogrepl.ParseLSN(known.Confirmed)
	if err != nil || point == 0 {
		return slot{}, fmt.Errorf("%w: confirmed_flush_lsn %.40q: want an LSN", stream.ErrInvalid, known.Confirmed)
	}
	return slot{name: c.Slot, point: uint64(point), catalog: known.CatalogXmin}, nil
}

// free ends the connection of this process that still has the slot: the server may not know yet that it
// was lost. A connection of any other client is left alone.
func (s *session) free(ctx context.Context, pid uint32) error {
	u := s.upstream
	if pid == 0 {
		return nil
	}
	if pid != u.sender.Load() {
		return fmt.Errorf("the slot %q is in use by the server process %d: want a slot of its own for each gateway, in slot", u.config.Slot, pid)
	}
	_, err := s.queries.query(ctx, `SELECT pg_terminate_backend(active_pid, $3::bigint) FROM pg_replication_slots WHERE slot_name = $1 AND active_pid = $2::int`,
		u.config.Slot, strconv.FormatUint(uint64(pid), 10), strconv.FormatInt((u.config.StallAfter/2).Milliseconds(), 10))
	return err
}

// drop removes the permanent slot.
func (s *session) drop(ctx context.Context) error {
	_, err := s.queries.query(ctx, `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1`, s.upstream.config.Slot)
	return err
}

// giveUp removes the permanent slot after the stream has ended. Nothing is left for the server to keep.
func (s *session) giveUp() {
	s.checking <- struct{}{}
	defer func() { <-s.checking }()
	c := &s.upstream.config
	if c.Slot == "" || s.queries == nil {
		return // a temporary one ends with its connection
	}
	ctx, cancel := c.limit(context.Background())
	defer cancel()
	err := s.free(ctx, s.upstream.sender.Load())
	if err == nil {
		err = s.drop(ctx)
	}
	if err != nil {
		c.Logger.Error("the replication slot was not dropped", "slot", c.Slot, "error", s.upstream.failed(err).Error())
		return
	}
	c.Logger.Warn("the replication slot was dropped, and tables are read again", "slot", c.Slot)
}

// look measures how much WAL the server keeps for the slots of gateways of this role. It gives up its own
// slot if that is too much, and ends the connection of another gateway that did not: a process that is
// frozen cannot. It is called while checking is held.
func (s *session) look(ctx context.Context) error {
	c := &s.upstream.config
	if now := time.Now(); now.Sub(s.looked) < c.checkEvery {
		return nil
	} else {
		s.looked = now
	}
	rows, err := s.queries.query(ctx, `SELECT s.slot_name, s.active_pid, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn), 0)::bigint
		FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
		WHERE s.slot_name = $1 OR s.temporary AND starts_with(s.slot_name, $2) AND a.usename = current_user`, s.slotName, slotPrefix)
	if err != nil {
		return err
	}
	var own error
	for _, r := range rows {
		retained, err := strconv.ParseInt(r[2], 10, 64)
		switch {
		case err != nil:
			return fmt.Errorf("the WAL of the slot %q: %w", r[0], err)
		case r[0] == s.slotName:
			s.upstream.retained.Store(retained)
			if retained > c.MaxRetainedWAL {
				own = fmt.Errorf("%w: %s", errGivenUp, tooMuch(retained, c.MaxRetainedWAL))
			}
		case retained > c.MaxRetainedWAL && r[1] != "":
			c.Logger.Warn("the slot of another gateway is ended, which did not give it up", "slot", r[0], "because", tooMuch(retained, c.MaxRetainedWAL))
			if _, err := s.queries.query(ctx, `SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1 AND active_pid = $2::int`, r[0], r[1]); err != nil {
				return err
			}
		}
	}
	if own != nil {
		s.cancel(own)
	}
	return own
}

// slotPrefix is what names of temporary slots begin with.
const slotPrefix = "watchtide_"

// settled reports whether the definition of a table, and what the publication has of it, are what they
// were at the place from which a slot goes on: every transaction that commits after that place is at least
// as new as the catalog's oldest one of the slot.
func (d *described) settled(ctx context.Context, conn queries, publication, catalog string) (bool, error) {
	rows, err := conn.query(ctx, `WITH tables AS (SELECT $1::oid AS id UNION SELECT relid::oid FROM pg_partition_tree($1::oid::regclass))
		SELECT coalesce(bool_and(age(x) > age($3::xid)), false) FROM (
			SELECT xmin FROM pg_class WHERE oid IN (SELECT id FROM tables)
			UNION ALL SELECT xmin FROM pg_attribute WHERE attrelid IN (SELECT id FROM tables)
			UNION ALL SELECT xmin FROM pg_index WHERE indrelid IN (SELECT id FROM tables)
			UNION ALL SELECT xmin FROM pg_inherits WHERE inhrelid IN (SELECT id FROM tables)
			UNION ALL SELECT xmin FROM pg_publication_rel WHERE prrelid IN (SELECT id FROM tables)
			UNION ALL SELECT xmin FROM pg_publication WHERE pubname = $2
		) t(x)`, strconv.FormatUint(uint64(d.id), 10), publication, catalog)
	if err != nil {
		return false, err
	}
	return isTrue(rows[0][0]), nil
}

// resume goes on from what the source has, without reading the table, if the slot has all that came after
// it. latest is the last transaction of which the stream has passed on something already.
func (f *follower) resume(ctx context.Context, latest uint64) (bool, error) {
	s, session := f.source, f.session
	if s.rows == nil || session.catalog == "" || s.epoch != f.epoch() {
		return false, nil
	}
	// A server that has crashed may have lost the end of its WAL, and have written something else there.
	if s.committed+1 < session.from || s.committed >= session.head || latest > s.committed {
		return false, nil
	}
	if !f.knownAs(s.described) {
		return false, nil
	}
	settled, err := session.settled(ctx, f.table)
	if err != nil || !settled {
		return false, err
	}
	err = session.ask(ctx, func(conn queries) (err error) {
		_, f.small, err = f.table.estimate(ctx, conn)
		return err
	})
	if err != nil {
		return false, err
	}
	var held int64
	for key, r := range s.rows {
		if r.relation == 0 { // of another process, which keeps all values
			r = s.keep(r.value, r.revision, f.table.id, f.small)
			s.rows[key] = r
		}
		held += r.cost(key)
	}
	f.sink.Charge(held)
	f.from, f.revision, f.target = s.committed+1, s.committed, session.head-1
	s.described = f.table
	f.member.safe.Store(f.from)
	return true, nil
}

// knownAs reports whether the table is the one that was read; nil: another process has read it. Then the
// partition of a row is not known, nor which partitions there were, nor when its schema was published.
func (f *follower) knownAs(before *described) bool {
	if before == nil {
		return !f.table.root && strings.TrimSpace(f.table.listed) != ""
	}
	return before.same(f.table)
}

// catchUp reports that all is there that the server had when the connection was made.
func (f *follower) catchUp(lsn uint64) error {
	if f.target == 0 || lsn < f.target {
		return nil
	}
	f.target = 0
	return f.sink.Status(stream.InSync, "")
}
