package setup

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// publication is the one that the gateway looks for by itself.
const publication = "watchtide"

// postgres looks for PostgreSQL where many programs do.
func (e Environment) postgres(told string) search {
	return func(ctx context.Context) *Source {
		at := told
		if at == "" {
			at = e.Getenv("DATABASE_URL")
			if scheme, _, _ := strings.Cut(at, "://"); scheme != "postgres" && scheme != "postgresql" {
				return nil // of another database
			}
		}
		return askPostgres(ctx, at)
	}
}

func askPostgres(ctx context.Context, at string) *Source {
	shown, hasPassword := withoutPassword(at)
	s := &Source{Type: "postgres", Where: shown, Fields: []string{"url: " + quoted(shown)}}
	if hasPassword {
		s.Notes = append(s.Notes, "The password goes into a file that only this user can read:", `password_file: "postgres.password"`)
	}
	var lacks []string
	s.Watches, lacks, s.Problem = postgresWatches(ctx, at)
	if len(lacks) > 0 {
		s.Notes = append(s.Notes, "The database does not have what a watch needs. An administrator adds it:")
		s.Notes = append(s.Notes, lacks...)
	}
	return s
}

// withoutPassword returns a URL without the password in it, and whether it has one.
func withoutPassword(at string) (shown string, hasPassword bool) {
	u, err := url.Parse(at)
	if err != nil {
		return "postgres://127.0.0.1/postgres", false // the reason is the one that the library gives
	}
	if _, hasPassword = u.User.Password(); hasPassword {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	if query.Has("password") {
		hasPassword = true
		query.Del("password")
		u.RawQuery = query.Encode()
	}
	return u.String(), hasPassword
}

// postgresWatches returns a watch for each of the first tables, and the statements that are missing.
func postgresWatches(ctx context.Context, at string) (watches []Watch, lacks []string, err error) {
	none := []Watch{{Name: "orders", Fields: "table: orders", Note: "there is no table with a primary key yet"}}
	conn, err := pgconn.Connect(ctx, at)
	if err != nil {
		return none, nil, err
	}
	defer func() { _ = conn.Close(ctx); <-conn.CleanupDone() }()
	rows, err := askRow(ctx, conn, `SELECT current_setting('wal_level'), quote_ident(current_user),
		(SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user), EXISTS (SELECT FROM pg_publication WHERE pubname = '`+publication+`')`)
	if err != nil {
		return none, nil, err
	}
	level, role, replicates, published := rows[0][0], rows[0][1], rows[0][2] == "t", rows[0][3] == "t"
	tables, err := askRow(ctx, conn, `SELECT n.nspname, c.relname, quote_ident(n.nspname) || '.' || quote_ident(c.relname),
			EXISTS (SELECT FROM pg_publication_tables t WHERE t.pubname = '`+publication+`' AND t.schemaname = n.nspname AND t.tablename = c.relname) AS has
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname !~ '^(pg_|information_schema$)'
			AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
		ORDER BY has DESC, n.nspname <> 'public', 1, 2 LIMIT `+fmt.Sprint(maxWatches))
	if err != nil {
		return none, nil, err
	}
	if level != "logical" {
		lacks = append(lacks, "ALTER SYSTEM SET wal_level = 'logical'; -- and a restart of the server")
	}
	if !replicates {
		lacks = append(lacks, "ALTER ROLE "+role+" REPLICATION;")
	}
	var missing []string
	for _, t := range tables {
		watches = append(watches, Watch{Name: watchName(t[1], "table"), Fields: "table: " + quoted(tableName(t[0], t[1]))})
		if t[3] != "t" {
			missing = append(missing, t[2])
		}
	}
	switch list := strings.Join(missing, ", "); {
	case len(tables) == 0:
		return none, lacks, nil
	case !published:
		lacks = append(lacks, "CREATE PUBLICATION "+publication+" FOR TABLE "+list+";")
	case list != "":
		lacks = append(lacks, "ALTER PUBLICATION "+publication+" ADD TABLE "+list+";")
	}
	return watches, lacks, nil
}

// tableName returns the name of a table as a watch has it.
func tableName(schema, name string) string {
	part := func(s string) string {
		if strings.ContainsAny(s, `."`) {
			return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
		return s
	}
	if schema == "public" {
		return part(name)
	}
	return part(schema) + "." + part(name)
}

// askRow returns the rows of a query.
func askRow(ctx context.Context, conn *pgconn.PgConn, sql string) ([][]string, error) {
	result := conn.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
	var rows [][]string
	for _, values := range result.Rows {
		row := make([]string, len(values))
		for i, value := range values {
			row[i] = string(value)
		}
		rows = append(rows, row)
	}
	return rows, cmp.Or(result.Err, ctx.Err())
}
