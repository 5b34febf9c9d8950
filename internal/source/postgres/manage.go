package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// publishedKinds are the kinds of changes that a watch needs.
const publishedKinds = `publish = 'insert, update, delete, truncate'`

// createPublication makes the publication, if the configuration says so and there is none. That comes before a
// slot is made: the server looks for it in the catalog as it was at each change.
func createPublication(ctx context.Context, conn queries) error {
	c := conn.config
	if !c.Manage {
		return nil
	}
	rows, err := conn.query(ctx, `SELECT FROM pg_publication WHERE pubname = $1`, c.Publication)
	if err != nil || len(rows) > 0 {
		return err
	}
	return alter(ctx, conn, "CREATE PUBLICATION "+quoted(c.Publication)+" WITH ("+publishedKinds+")", nil)
}

// manage has the publication publish a table, if the configuration says so. Nothing that the publication has
// already is changed: to publish more of another table could have the server refuse what applications write
// there.
func (s *session) manage(ctx context.Context, t Table) error {
	c := &s.upstream.config
	if !c.Manage || t.Unmanaged {
		return nil
	}
	return s.ask(ctx, func(conn queries) error {
		if _, err := checkServer(ctx, conn, t); err != nil {
			return err
		}
		lacks, err := lacksTable(ctx, conn, t)
		if err != nil || !lacks {
			return err
		}
		d, err := managed(ctx, conn, t)
		if err != nil {
			return err
		}
		schema, name, _ := parseTable(t.Name)
		statement := "ALTER PUBLICATION " + quoted(c.Publication) + " ADD TABLE " + sqlName(schema, name)
		if t.Where != "" {
			statement += " WHERE (" + t.Where + ")"
		}
		return alter(ctx, conn, statement, func() error { return d.checkColumns(ctx, conn, t) })
	})
}

// lacksTable reports whether the publication exists, and does not have a table, or a partition of it.
func lacksTable(ctx context.Context, conn queries, t Table) (bool, error) {
	schema, name, _ := parseTable(t.Name)
	rows, err := conn.query(ctx, `SELECT FROM pg_publication p, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
			LATERAL (SELECT c.oid UNION SELECT relid::oid FROM pg_partition_tree(c.oid::regclass) WHERE isleaf) o(id)
		WHERE p.pubname = $1 AND n.nspname = $2 AND c.relname = $3 AND (c.relkind <> 'p' OR o.id <> c.oid) AND NOT EXISTS (
			SELECT FROM pg_publication_tables t JOIN pg_namespace tn ON tn.nspname = t.schemaname JOIN pg_class tc ON tc.relnamespace = tn.oid AND tc.relname = t.tablename
			WHERE t.pubname = p.pubname AND (tc.oid = o.id OR tc.oid = c.oid))`, conn.config.Publication, schema, name)
	return len(rows) > 0, err
}

// managed describes a table that is to be published. A table whose deletes do not tell their keys is
// refused: to publish it would have the server refuse what applications write.
func managed(ctx context.Context, conn queries, t Table) (*described, error) {
	schema, name, _ := parseTable(t.Name)
	d, identity, err := find(ctx, conn, schema, name)
	if err != nil {
		return nil, err
	}
	all, err := columnsOf(ctx, conn, d.id)
	if err != nil {
		return nil, err
	}
	if err := d.findKey(ctx, conn, t, sqlName(schema, name), identity, all); err != nil {
		return nil, err
	}
	rows, err := conn.query(ctx, `SELECT c.oid::regclass FROM pg_class c
		WHERE c.oid IN (SELECT $1::oid UNION SELECT relid::oid FROM pg_partition_tree($1::oid::regclass)) AND c.relkind = 'r' AND CASE c.relreplident
			WHEN 'f' THEN false
			WHEN 'd' THEN NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary)
			WHEN 'i' THEN NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisreplident)
			ELSE true END`, strconv.FormatUint(uint64(d.id), 10))
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		return nil, fmt.Errorf("%s has no replica identity, so to publish it would make its updates and deletes fail: want ALTER TABLE %s REPLICA IDENTITY DEFAULT, and a primary key", rows[0][0], rows[0][0])
	}
	return d, nil
}

// alter executes a statement that changes the publication, unless a check fails that sees what it has done.
func alter(ctx context.Context, conn queries, statement string, check func() error) (err error) {
	if _, err := conn.query(ctx, "BEGIN READ WRITE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = conn.query(context.WithoutCancel(ctx), "ROLLBACK") // a connection that is lost forgets it too
			err = &refusedError{statement, err}
		}
	}()
	// A table that is locked must not hold up what comes after this statement for long.
	timeout := strconv.FormatInt(conn.config.StallAfter.Milliseconds()/2, 10)
	for _, sql := range []string{"SET LOCAL lock_timeout = " + timeout, statement} {
		if _, err := conn.query(ctx, sql); err != nil {
			return err
		}
	}
	if check != nil {
		if err := check(); err != nil {
			return err
		}
	}
	if _, err := conn.query(ctx, "COMMIT"); err != nil {
		return err
	}
	conn.config.Logger.Info("changed the publication", "statement", statement)
	return nil
}

// checkColumns reports a row filter of the publication that uses more than the replica identity: the server
// would refuse updates and deletes of the table.
func (d *described) checkColumns(ctx context.Context, conn queries, t Table) error {
	if t.Where == "" || d.replica == nil {
		return nil
	}
	rows, err := conn.query(ctx, `SELECT a.attname FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
		JOIN pg_depend d ON d.classid = 'pg_publication_rel'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid = r.prrelid
		JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
		WHERE p.pubname = $1 AND r.prrelid = $2::oid AND d.refobjsubid > 0`, conn.config.Publication, strconv.FormatUint(uint64(d.id), 10))
	if err != nil {
		return err
	}
	for _, r := range rows {
		if !slices.Contains(d.replica, r[0]) {
			return fmt.Errorf("where uses the column %q, which is not in the replica identity, so that updates and deletes of the table would fail: want a view of the watch with a filter, or %s in the replica identity",
				r[0], quoted(r[0]))
		}
	}
	return nil
}

// checkWhere reports a row filter of the publication that is not the one that a watch wants. Two
// expressions are the same if the server plans the same for them.
func (d *described) checkWhere(ctx context.Context, conn queries, t Table, publication string) error {
	if t.Where == "" {
		return nil
	}
	if strings.HasPrefix(conn.ParameterStatus("server_version"), "14") {
		return errors.New("where needs row filters of publications: want PostgreSQL 15 or newer, or a view of the watch with a filter")
	}
	schema, name, _ := parseTable(t.Name)
	table := sqlName(schema, name)
	want := fmt.Sprintf("want ALTER PUBLICATION %s DROP TABLE %s; ALTER PUBLICATION %s ADD TABLE %s WHERE (%s), in one transaction",
		quoted(publication), table, quoted(publication), table, t.Where)
	if d.filter == "" {
		return fmt.Errorf("the publication %q has all rows of %s, and not only those of where: %s", publication, table, want)
	}
	for range 2 { // the server may choose another plan in between
		wanted, err := d.plan(ctx, conn, table, t.Where)
		if err != nil {
			return &refusedError{"where", err}
		}
		has, err := d.plan(ctx, conn, table, d.filter)
		if err != nil {
			return &refusedError{fmt.Sprintf("the row filter of the publication %q", publication), err}
		}
		if wanted == has {
			return nil
		}
	}
	return fmt.Errorf("the publication %q has the rows of %s for which %.200s, and where differs: %s", publication, table, d.filter, want)
}

// plan returns how the server would find the rows of a filter.
func (d *described) plan(ctx context.Context, conn queries, table, filter string) (string, error) {
	only := "ONLY "
	if d.root {
		only = ""
	}
	rows, err := conn.query(ctx, "EXPLAIN (COSTS OFF, VERBOSE, FORMAT JSON) SELECT FROM "+only+table+" WHERE ("+filter+")")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(strings.Join(r, ""))
	}
	return b.String(), nil
}
