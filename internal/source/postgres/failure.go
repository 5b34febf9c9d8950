package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// errChanged means that a table is no longer what it was when it was read.
var errChanged = errors.New("the table has changed, and is read again")

// stalled is the error of a server that does not answer.
func (c *Config) stalled() error {
	return fmt.Errorf("%w: no answer within %v", stream.ErrStalled, c.StallAfter)
}

// failed adds the upstream and a hint to an error, whose text it bounds.
func (u *Upstream) failed(err error) error {
	var known *adapter.Failure
	if err == nil || errors.As(err, &known) {
		return err
	}
	text := adapter.HideSecret(u.words(err), u.secrets())
	return adapter.NewFailure(err, fmt.Sprintf("postgres %s: %.1000s%s", u.name, text, u.hint(err)))
}

// secrets returns what no text may contain.
func (u *Upstream) secrets() iter.Seq[string] {
	var all []string
	if password, err := adapter.ReadSecret(u.config.PasswordFile); u.config.PasswordFile != "" && err == nil {
		all = append(all, password)
	}
	return slices.Values(all)
}

// refusedError is the error of a part of the configuration, or of a statement, that the server refuses.
type refusedError struct {
	what string
	err  error
}

func (e *refusedError) Error() string { return e.what + ": " + e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// words is the text of an error, on one line.
func (u *Upstream) words(err error) string {
	var part *refusedError
	if errors.As(err, &part) {
		return part.what + ": " + u.words(part.err)
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return strings.TrimSpace(refused.Message + " (" + refused.Code + ")")
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// Codes of the server's errors.
const (
	codeNotReady  = "55000"
	codePrivilege = "42501"
	codeUndefined = "42704"
	codeInUse     = "55006"
)

// unpublished reports whether a stream cannot go on since the publication did not exist at a change: the
// server says so again whenever it comes to that change.
func unpublished(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == codeUndefined && strings.Contains(refused.Message, "publication")
}

// hint suggests a remedy, where the error indicates one.
func (u *Upstream) hint(err error) string {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return ""
	}
	switch text := refused.Message; {
	case strings.Contains(text, "replication slots are in use"):
		return "; want a higher max_replication_slots: one for each gateway and source, and one more while a table is read"
	case strings.Contains(text, "max_wal_senders"):
		return "; want a higher max_wal_senders: one for each gateway and source, and one more while a table is read"
	case refused.Code == codeInUse && strings.Contains(text, "replication slot"):
		return "; want a slot of its own for each gateway, in slot"
	case refused.Code == codeNotReady && strings.Contains(text, "wal_level"):
		return "; " + wantLogical
	case refused.Code == codePrivilege && strings.Contains(text, "row-level security"):
		return "; want a role that row-level security does not restrict: ALTER ROLE … BYPASSRLS"
	case refused.Code == codePrivilege && (strings.Contains(text, "replication") || strings.Contains(text, "WAL sender")):
		return "; want ALTER ROLE " + quoted(u.user) + " REPLICATION"
	}
	return ""
}

// wantLogical says how a server decodes its WAL.
const wantLogical = `want ALTER SYSTEM SET wal_level = 'logical', and a restart of the server`

// because returns the cause of the context if it has ended, instead of err, which then only reports the
// end.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// waiting is the error of a slot that was not made in time.
func (c *Config) waiting() error {
	return fmt.Errorf("%w: no replication slot was made within %v, which waits for older transactions to end; look for them in pg_stat_activity, by xact_start", stream.ErrStalled, c.slotTimeout)
}
