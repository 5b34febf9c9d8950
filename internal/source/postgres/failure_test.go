package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/watchtide/watchtide/stream"
)

// TestFailures: what the server says is bounded, on one line, without the password, and with what helps.
func TestFailures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("hunter2hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := New(Config{URL: "postgres://wt@db/app", PasswordFile: file})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&pgconn.PgError{Code: codePrivilege, Message: "permission denied to start WAL sender"}, `; want ALTER ROLE "wt" REPLICATION`},
		{&pgconn.PgError{Code: codePrivilege, Message: "must be superuser or replication role to start walsender"}, `; want ALTER ROLE "wt" REPLICATION`},
		{&pgconn.PgError{Code: codePrivilege, Message: `query would be affected by row-level security policy for table "t"`}, "BYPASSRLS"},
		{&pgconn.PgError{Code: "53400", Message: "all replication slots are in use"}, "want a higher max_replication_slots"},
		{&pgconn.PgError{Code: "53300", Message: "number of requested standby connections exceeds max_wal_senders (currently 1)"}, "want a higher max_wal_senders"},
		{&pgconn.PgError{Code: codeInUse, Message: `replication slot "mine" is active for PID 7`}, "want a slot of its own for each gateway"},
		{&refusedError{"where", &pgconn.PgError{Code: "42703", Message: `column "x" does not exist`}}, `: where: column "x" does not exist (42703)`},
		{errors.New("no password hunter2hunter2 works\nhere"), "no password [hidden] works here"},
		{fmt.Errorf("%w: x", stream.ErrStalled), "upstream stalled: x"},
		{errors.New(strings.Repeat("x", 5000)), "xxx"},
	} {
		err := u.failed(c.err)
		text := err.Error()
		if !strings.HasPrefix(text, "postgres db:5432/app: ") || !strings.Contains(text, c.want) || len(text) > 1200 || strings.ContainsAny(text, "\n") {
			t.Errorf("%v: %q, want %q in it", c.err, text, c.want)
		}
		if !errors.Is(err, c.err) {
			t.Errorf("%v is not the cause of %v", c.err, err)
		}
		if again := u.failed(err); again != err {
			t.Errorf("%v became %v", err, again)
		}
	}
}
