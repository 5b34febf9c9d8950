package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/watchtide/watchtide/stream"
)

// snapshot reads the table and commits it.
func (f *follower) snapshot(ctx context.Context) error {
	u := f.source.upstream
	if err := acquire(ctx, u.readers); err != nil {
		return err
	}
	defer func() { <-u.readers }()
	conn, err := u.config.connect(ctx, false)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	made, err := f.export(ctx, conn)
	if err != nil {
		return err
	}
	// The definition may have changed since it was read, and now it cannot for the reader.
	now, err := describe(ctx, queries{conn, &u.config}, f.source.table, u.config.Publication)
	if err != nil {
		return err
	}
	if !f.table.same(now) {
		return errGone
	}
	f.table = now
	expected, small, err := now.estimate(ctx, queries{conn, &u.config})
	if err != nil {
		return err
	}
	f.small = small
	f.source.expected.Store(expected)
	defer f.source.expected.Store(0)
	rows, err := f.load(ctx, conn, made.point-1)
	if err != nil {
		return err
	}
	if err := f.sink.Commit(made.point - 1); err != nil {
		f.source.rows = nil // whether the sink has them is not known
		return err
	}
	f.source.rows, f.source.committed, f.source.epoch = rows, made.point-1, f.epoch()
	f.from, f.revision, f.source.described = made.point, made.point-1, f.table
	f.member.safe.Store(f.from)
	return nil
}

// acquire takes one of the places of a channel.
func acquire(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// export makes a slot for a moment, and gives a connection its snapshot.
func (f *follower) export(ctx context.Context, reader *pgconn.PgConn) (slot, error) {
	u := f.source.upstream
	if err := acquire(ctx, u.exporter); err != nil {
		return slot{}, err
	}
	defer func() { <-u.exporter }()
	conn, err := u.config.connect(ctx, true)
	if err != nil {
		return slot{}, err
	}
	defer closeConn(conn)
	r := replication{conn, &u.config}
	limited, cancel := u.config.limit(ctx)
	defer cancel()
	who, _, err := r.identify(limited)
	if err != nil {
		return slot{}, err
	}
	if who != f.session.system {
		return slot{}, fmt.Errorf("%w: connections reach different servers, or the timeline has changed", stream.ErrUnresumable)
	}
	made, err := r.newSlot(ctx, slotOptions{temporary: true, export: true})
	if err != nil {
		return slot{}, err
	}
	if strings.ContainsAny(made.snapshot, `'\`) {
		return slot{}, fmt.Errorf("%w: a snapshot named %.40q", stream.ErrInvalid, made.snapshot)
	}
	_, err = reader.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '"+made.snapshot+"'").ReadAll()
	return made, because(ctx, err)
}

// epoch names the revision order, and what the rows are.
func (f *follower) epoch() string {
	system := f.session.system
	return stream.CanonicalEpoch(strings.Join([]string{
		"postgres", system.id, strconv.Itoa(int(system.timeline)), f.table.identity(f.source.table, f.source.upstream.config.Publication),
	}, "\x01"))
}

// load sends the rows of the table, in the order of their keys. A row that was sent before keeps its
// revision.
func (f *follower) load(ctx context.Context, conn *pgconn.PgConn, revision uint64) (map[string]row, error) {
	if err := f.sink.Reset(f.epoch()); err != nil {
		return nil, err
	}
	old := f.source.rows
	if f.source.epoch != f.epoch() || f.source.committed > revision {
		old = nil
	}
	var held int64 // by the rows from before, until the new ones are complete
	for key, r := range f.source.rows {
		held += r.cost(key)
	}
	f.sink.Charge(held)
	sql, l, err := f.selection()
	if err != nil {
		return nil, err
	}
	result := conn.ExecParams(ctx, sql, nil, nil, nil, nil)
	rows := make(map[string]row, len(old))
	tuple := make([]cell, l.columns)
	for result.NextRow() {
		key, value, r, err := f.read(l, tuple, result.Values(), old, revision)
		if err != nil {
			return nil, err
		}
		rows[key] = r
		f.sink.Charge(r.cost(key))
		if err := f.sink.Upsert(stream.Resource{Key: key, Revision: r.revision, Value: value}); err != nil {
			return nil, err
		}
	}
	_, err = result.Close()
	f.sink.Charge(-held)
	return rows, because(ctx, err)
}

// read makes a row of what a query returns: the relation, and then the columns.
func (f *follower) read(l *layout, tuple []cell, values [][]byte, old map[string]row, revision uint64) (key string, value []byte, r row, err error) {
	if len(values) != len(tuple)+1 {
		return "", nil, row{}, fmt.Errorf("%w: a row of %d values, want %d", stream.ErrInvalid, len(values), len(tuple)+1)
	}
	for i, value := range values[1:] {
		tuple[i] = cell{kind: cellText, text: value}
		if value == nil {
			tuple[i].kind = cellNull
		}
	}
	if key, err = l.keyOf(tuple, nil); err != nil {
		return "", nil, row{}, err
	}
	if value, err = l.valueOf(tuple, nil); err != nil {
		return "", nil, row{}, err
	}
	id, err := strconv.ParseUint(string(values[0]), 10, 32)
	if err != nil {
		return "", nil, row{}, fmt.Errorf("%w: relation %.20q: want a number", stream.ErrInvalid, values[0])
	}
	if known, ok := old[key]; ok && f.source.has(known, value) {
		revision = known.revision
		if known.value != nil {
			value = known.value
		}
	}
	return key, value, f.source.keep(value, revision, uint32(id), f.small), nil
}

// selection returns the query that reads the table, and how its rows are made.
func (f *follower) selection() (string, *layout, error) {
	var order []string
	for _, c := range f.table.served {
		order = append(order, c.name)
	}
	for _, name := range f.table.key {
		if !within([]string{name}, order) {
			order = append(order, name)
		}
	}
	l, err := place(f.table.served, f.table.key, order)
	if err != nil {
		return "", nil, err
	}
	schema, name, _ := parseTable(f.source.table.Name)
	only := "ONLY "
	if f.table.root {
		only = ""
	}
	sql := "SELECT tableoid, " + quotedAll(order) + " FROM " + only + sqlName(schema, name)
	if f.table.filter != "" {
		sql += " WHERE " + f.table.filter
	}
	return sql + " ORDER BY " + quotedAll(f.table.key), l, nil
}
