package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// described is a table as the server has it.
type described struct {
	id        uint32
	root      bool     // its rows are in partitions
	relations []uint32 // whose changes are its: its own, or those of its partitions
	served    []column
	known     []string // the names of all columns
	key       []string
	filter    string   // which rows the publication has; empty: all
	replica   []string // the columns of the replica identity; nil: all
	at        uint64   // the end of the WAL before it was described
	role      string   // whose rights count
	listed    string   // in the publication, as what; it is another one if the table was taken out and added
}

// same reports whether a table is still what it was when it was read, apart from new columns.
func (d *described) same(now *described) bool {
	return d.id == now.id && d.root == now.root && slices.Equal(d.relations, now.relations) && slices.Equal(d.key, now.key) &&
		d.filter == now.filter && d.listed == now.listed &&
		!slices.ContainsFunc(d.served, func(c column) bool {
			return !slices.ContainsFunc(now.served, func(o column) bool { return o.name == c.name && o.typ == c.typ })
		})
}

// identity names what a watch has of a server: with another one its revisions have another order, or its
// rows other values.
func (d *described) identity(t Table, publication string) string {
	return strings.Join([]string{
		publication, strconv.FormatUint(uint64(d.id), 10), t.Name, strings.Join(d.key, "\x00"), strings.Join(t.Columns, "\x00"), d.filter,
	}, "\x01")
}

// queries is a connection for short queries.
type queries struct {
	*pgconn.PgConn
	config *Config // bounds the wait for each answer
}

// query returns the rows of a query; a value that is null is empty.
func (conn queries) query(ctx context.Context, sql string, args ...string) ([][]string, error) {
	ctx, cancel := conn.config.limit(ctx)
	defer cancel()
	params := make([][]byte, len(args))
	for i, arg := range args {
		params[i] = []byte(arg)
	}
	result := conn.ExecParams(ctx, sql, params, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, because(ctx, result.Err)
	}
	rows := make([][]string, len(result.Rows))
	for i, row := range result.Rows {
		for _, value := range row {
			rows[i] = append(rows[i], string(value))
		}
	}
	return rows, nil
}

// isTrue reports whether the server says true.
func isTrue(text string) bool { return text == "t" || text == "true" }

// checkServer reports what a database lacks for any watch, and for those of tables.
// It returns where the WAL ended.
func checkServer(ctx context.Context, conn queries, tables ...Table) (at uint64, err error) {
	rows, err := conn.query(ctx, `SELECT current_setting('wal_level'), pg_is_in_recovery(), current_setting('server_version_num')::int,
		CASE WHEN pg_is_in_recovery() THEN 0 ELSE pg_current_wal_lsn() - '0/0' END`)
	if err != nil {
		return 0, err
	}
	switch r := rows[0]; {
	case len(r[2]) < 6 || r[2] < "140000":
		return 0, fmt.Errorf("the server is of version %.10s: want PostgreSQL 14 or newer", r[2])
	case isTrue(r[1]):
		return 0, errors.New("the server is a standby: want the primary; with several hosts in url, target_session_attrs=read-write finds it")
	case conn.config.Failover && r[2] < "170000":
		return 0, fmt.Errorf("the server is of version %.10s: want PostgreSQL 17 or newer for failover, or leave it out", r[2])
	case r[2] < "150000" && slices.ContainsFunc(tables, func(t Table) bool { return t.Where != "" }):
		return 0, fmt.Errorf("the server is of version %.10s: want PostgreSQL 15 or newer for where, or leave it out", r[2])
	case r[0] != "logical":
		return 0, fmt.Errorf("wal_level is %.20q: %s", r[0], wantLogical)
	}
	if at, err = strconv.ParseUint(rows[0][3], 10, 64); err != nil {
		return 0, fmt.Errorf("the end of the WAL: %w", err)
	}
	return at, nil
}

// checkPublication reports what the publication lacks for any watch, or that there is none that tables could be in.
func checkPublication(ctx context.Context, conn queries, publication string, tables ...Table) error {
	rows, err := conn.query(ctx, `SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication WHERE pubname = $1`, publication)
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		return fmt.Errorf("there is no publication %q: want CREATE PUBLICATION %s FOR TABLE %s", publication, quoted(publication), listed(tables))
	case !isTrue(rows[0][0]):
		return fmt.Errorf("the publication %q leaves out some kinds of changes: want ALTER PUBLICATION %s SET (publish = 'insert, update, delete, truncate')", publication, quoted(publication))
	}
	return nil
}

// listed returns the tables as in CREATE PUBLICATION, without repetition.
func listed(tables []Table) string {
	var all []string
	for _, t := range tables {
		schema, name, _ := parseTable(t.Name)
		one := sqlName(schema, name)
		if t.Where != "" {
			one += " WHERE (" + t.Where + ")"
		}
		all = append(all, one)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// describe returns a table, or what it lacks for a watch, with the statement that provides it.
func describe(ctx context.Context, conn queries, t Table, publication string) (*described, error) {
	at, err := checkServer(ctx, conn, t)
	if err != nil {
		return nil, err
	}
	if err := checkPublication(ctx, conn, publication, t); err != nil {
		return nil, err
	}
	schema, name, _ := parseTable(t.Name)
	d, identity, err := find(ctx, conn, schema, name)
	if err != nil {
		return nil, err
	}
	d.at = at
	published, err := d.published(ctx, conn, schema, name, publication)
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
	if err := d.checkWhere(ctx, conn, t, publication); err != nil {
		return nil, err
	}
	return d, d.choose(t, sqlName(schema, name), publication, all, published)
}

// find returns the table with a name, and its replica identity.
func find(ctx context.Context, conn queries, schema, name string) (d *described, identity string, err error) {
	rows, err := conn.query(ctx, `SELECT c.oid, c.relkind, c.relreplident, c.relpersistence, has_schema_privilege(n.oid, 'USAGE'), current_user,
		CASE WHEN has_schema_privilege(n.oid, 'USAGE') THEN row_security_active(c.oid) END
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2`, schema, name)
	if err != nil {
		return nil, "", err
	}
	if len(rows) == 0 {
		return nil, "", fmt.Errorf("there is no table %s", sqlName(schema, name))
	}
	r := rows[0]
	id, err := strconv.ParseUint(r[0], 10, 32)
	if err != nil {
		return nil, "", fmt.Errorf("the number of the table: %w", err)
	}
	d = &described{id: uint32(id), root: r[1] == "p", role: r[5]}
	switch table := sqlName(schema, name); {
	case r[1] != "r" && r[1] != "p":
		return nil, "", fmt.Errorf("%s is not a table: want one, or the root of partitions; views have no changes of their own", table)
	case r[3] != "p":
		return nil, "", fmt.Errorf("the changes of %s are not in the WAL: want ALTER TABLE %s SET LOGGED", table, table)
	case !isTrue(r[4]):
		return nil, "", fmt.Errorf("the role may not use the schema: want GRANT USAGE ON SCHEMA %s TO %s", quoted(schema), quoted(r[5]))
	case isTrue(r[6]):
		return nil, "", fmt.Errorf("row-level security hides rows of %s from the role in queries, and not in the stream of changes: want ALTER ROLE %s BYPASSRLS, and rules of access here", table, quoted(r[5]))
	}
	return d, r[2], nil
}

// estimate returns about how many rows a table has, or 0 if it was not analyzed yet, or only a part is read; and
// whether no part of a row is stored out of line. A table that has none has an empty file for them.
func (d *described) estimate(ctx context.Context, conn queries) (count int64, small bool, err error) {
	rows, err := conn.query(ctx, `SELECT coalesce(sum(greatest(reltuples, 0)), 0)::bigint, coalesce(sum(pg_relation_size(nullif(reltoastrelid, 0))), 0) = 0
		FROM pg_class WHERE relkind = 'r' AND oid IN (SELECT $1::oid UNION SELECT relid::oid FROM pg_partition_tree($1::oid::regclass))`, strconv.FormatUint(uint64(d.id), 10))
	if err != nil {
		return 0, false, err
	}
	if d.filter == "" {
		count, err = strconv.ParseInt(rows[0][0], 10, 64)
	}
	return count, isTrue(rows[0][1]), err
}

// publishedAs is what a publication has of a table.
type publishedAs struct {
	Columns []string `json:"attnames"` // nil: all
	Filter  string   `json:"rowfilter"`
}

// published finds the relations of a table in the publication.
func (d *described) published(ctx context.Context, conn queries, schema, name, publication string) (publishedAs, error) {
	var as publishedAs
	of := `SELECT $1::oid AS relid`
	if d.root {
		of = `SELECT relid::oid AS relid FROM pg_partition_tree($1::oid::regclass) WHERE isleaf`
	}
	rows, err := conn.query(ctx, `SELECT o.relid, n.nspname, c.relname, to_jsonb(t),
			coalesce(r.oid::text, CASE WHEN p.puballtables THEN 'all of ' || p.oid END), c.relreplident, p.pubviaroot
		FROM (`+of+`) o JOIN pg_class c ON c.oid = o.relid JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_publication p ON p.pubname = $2
		LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = o.relid
		LEFT JOIN pg_publication_tables t ON t.pubname = $2 AND t.schemaname = n.nspname AND t.tablename = c.relname
		ORDER BY o.relid`, strconv.FormatUint(uint64(d.id), 10), publication)
	if err != nil {
		return as, err
	}
	for i, r := range rows {
		table := sqlName(r[1], r[2])
		id, err := strconv.ParseUint(r[0], 10, 32)
		if err != nil {
			return as, fmt.Errorf("the number of %s: %w", table, err)
		}
		var one publishedAs
		switch {
		case d.root && isTrue(r[6]):
			return as, fmt.Errorf("the publication %q has changes of partitions as those of the root, and leaves out when one of them is truncated: want ALTER PUBLICATION %s SET (publish_via_partition_root = false)", publication, quoted(publication))
		case r[3] == "":
			return as, fmt.Errorf("the publication %q does not have %s: want ALTER PUBLICATION %s ADD TABLE %s", publication, table, quoted(publication), sqlName(schema, name))
		case r[5] == "n":
			return as, fmt.Errorf("%s has no replica identity, so its deletes are not told: want ALTER TABLE %s REPLICA IDENTITY DEFAULT", table, table)
		}
		if err := json.Unmarshal([]byte(r[3]), &one); err != nil {
			return as, fmt.Errorf("what the publication has of %s: %w", table, err)
		}
		slices.Sort(one.Columns) // partitions have them in orders of their own
		if i > 0 && (one.Filter != as.Filter || !slices.Equal(one.Columns, as.Columns)) {
			return as, fmt.Errorf("the publication %q has other rows or columns of %s than of other partitions: want the same", publication, table)
		}
		as = one
		d.relations = append(d.relations, uint32(id))
		d.listed += r[4] + " "
	}
	d.filter = as.Filter
	return as, nil
}

// attribute is a column as the server has it.
type attribute struct {
	column
	generated, required, readable bool
}

// columnsOf returns the columns of a table in their order.
func columnsOf(ctx context.Context, conn queries, id uint32) ([]attribute, error) {
	rows, err := conn.query(ctx, `SELECT a.attname, a.atttypid, b.oid, a.attgenerated <> '', a.attnotnull, has_column_privilege(a.attrelid, a.attnum, 'SELECT')
		FROM pg_attribute a CROSS JOIN LATERAL (
			WITH RECURSIVE up AS (
				SELECT oid, typbasetype FROM pg_type WHERE oid = a.atttypid
				UNION ALL SELECT t.oid, t.typbasetype FROM up JOIN pg_type t ON t.oid = up.typbasetype
			) SELECT oid FROM up WHERE typbasetype = 0
		) b WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, strconv.FormatUint(uint64(id), 10))
	if err != nil {
		return nil, err
	}
	all := make([]attribute, len(rows))
	for i, r := range rows {
		typ, err := strconv.ParseUint(r[1], 10, 32)
		base, err2 := strconv.ParseUint(r[2], 10, 32)
		if err := cmp.Or(err, err2); err != nil {
			return nil, fmt.Errorf("the type of column %.63q: %w", r[0], err)
		}
		all[i] = attribute{newColumn(r[0], uint32(typ), uint32(base)), isTrue(r[3]), isTrue(r[4]), isTrue(r[5])}
	}
	return all, nil
}

// findKey finds the columns that identify a row, and checks that they do, also in a delete.
func (d *described) findKey(ctx context.Context, conn queries, t Table, table, identity string, all []attribute) error {
	rows, err := conn.query(ctx, `SELECT i.indisprimary, i.indisreplident, i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL,
		(SELECT json_agg(a.attname ORDER BY k.n) FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, n)
			JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE k.n <= i.indnkeyatts)
		FROM pg_index i WHERE i.indrelid = $1::oid ORDER BY i.indexrelid`, strconv.FormatUint(uint64(d.id), 10))
	if err != nil {
		return err
	}
	var primary, told []string
	unique := false
	for _, r := range rows {
		var columns []string
		if r[3] == "" || json.Unmarshal([]byte(r[3]), &columns) != nil {
			continue // it has expressions only
		}
		if isTrue(r[0]) {
			primary = columns
		}
		if isTrue(r[1]) && identity == "i" {
			told = columns
		}
		unique = unique || isTrue(r[2]) && len(t.Key) > 0 && within(columns, t.Key)
	}
	if identity == "d" {
		told = primary
	}
	if identity != "f" {
		d.replica = told
	}
	d.key = t.Key
	if len(d.key) == 0 {
		if d.key = primary; len(primary) == 0 {
			return fmt.Errorf("%s has no primary key: want ALTER TABLE %s ADD PRIMARY KEY (…), or key: [columns of a unique index] and that index as its replica identity", table, table)
		}
		unique = true
	}
	for _, name := range d.key {
		at := slices.IndexFunc(all, func(a attribute) bool { return a.name == name })
		switch {
		case at < 0:
			return fmt.Errorf("%s has no column %q, which key names", table, name)
		case !all[at].required:
			return fmt.Errorf("column %q of the key may be null: want ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", name, table, quoted(name))
		}
	}
	switch {
	case !unique:
		return fmt.Errorf("the key does not identify a row: want CREATE UNIQUE INDEX ON %s (%s)", table, quotedAll(d.key))
	case identity != "f" && !within(d.key, told):
		return fmt.Errorf("the key is not in the replica identity of %s, so its deletes do not tell it: want ALTER TABLE %s REPLICA IDENTITY USING INDEX …, of a unique index that has %s", table, table, quotedAll(d.key))
	}
	return nil
}

// within reports whether all of some names are among others.
func within(names, among []string) bool {
	for _, name := range names {
		if !slices.Contains(among, name) {
			return false
		}
	}
	return true
}

// choose finds the columns that are served.
func (d *described) choose(t Table, table, publication string, all []attribute, published publishedAs) error {
	for _, a := range all {
		d.known = append(d.known, a.name)
		has := published.Columns == nil || slices.Contains(published.Columns, a.name)
		listed := slices.Contains(t.Columns, a.name)
		inKey := slices.Contains(d.key, a.name)
		switch {
		case a.generated && !listed && !inKey || !has && !listed && !inKey:
			continue
		case a.generated:
			return fmt.Errorf("column %q of %s is generated, which the stream of changes does not have", a.name, table)
		case !has:
			return fmt.Errorf("the publication %q does not have column %q of %s: want it in ALTER PUBLICATION %s SET TABLE …", publication, a.name, table, quoted(publication))
		case len(t.Columns) > 0 && !listed && !inKey:
			continue
		case !a.readable:
			return fmt.Errorf("the role may not read column %q: want GRANT SELECT ON %s TO %s", a.name, table, quoted(d.role))
		case len(t.Columns) == 0 || listed:
			d.served = append(d.served, a.column)
		}
	}
	for _, name := range t.Columns {
		if !slices.ContainsFunc(all, func(a attribute) bool { return a.name == name }) {
			return fmt.Errorf("%s has no column %q, which columns names", table, name)
		}
	}
	return nil
}
