package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/watchtide/watchtide/stream"
)

// replication is a session that can make slots and follow one. It is owned by one goroutine.
type replication struct {
	conn   *pgconn.PgConn
	config *Config
}

// system is the identity of a server.
type system struct {
	id       string
	timeline int32
}

// identify asks for the identity of the server, and where its WAL ends.
func (r replication) identify(ctx context.Context) (who system, head uint64, err error) {
	s, err := pglogrepl.IdentifySystem(ctx, r.conn)
	if err != nil {
		return system{}, 0, because(ctx, err)
	}
	return system{s.SystemID, s.Timeline}, uint64(s.XLogPos), nil
}

// slot is a slot from which a stream begins, or that exports a snapshot.
type slot struct {
	name     string
	point    uint64 // the consistent point, or what the last session has confirmed
	snapshot string // the name of the exported snapshot; empty: there is none
	catalog  string // of a permanent slot, the oldest transaction of the catalog that it needs
}

// slotOptions say which slot is made.
type slotOptions struct {
	temporary bool
	export    bool   // it exports a snapshot, which lasts until the next command of the session
	name      string // empty: any
	failover  bool
}

// command returns the command that makes a slot.
func (o slotOptions) command() string {
	if o.name == "" {
		o.name = slotPrefix + strings.ToLower(rand.Text()[:12])
	}
	if o.failover {
		return "CREATE_REPLICATION_SLOT " + quoted(o.name) + " LOGICAL pgoutput (SNAPSHOT 'nothing', FAILOVER)"
	}
	kind, snapshot := "", " NOEXPORT_SNAPSHOT"
	if o.temporary {
		kind = " TEMPORARY"
	}
	if o.export {
		snapshot = " EXPORT_SNAPSHOT"
	}
	return "CREATE_REPLICATION_SLOT " + quoted(o.name) + kind + " LOGICAL pgoutput" + snapshot
}

// newSlot makes a slot.
func (r replication) newSlot(ctx context.Context, o slotOptions) (slot, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.config.slotTimeout, r.config.waiting())
	defer cancel()
	made, err := pglogrepl.ParseCreateReplicationSlot(r.conn.Exec(ctx, o.command()))
	if err != nil {
		return slot{}, because(ctx, err)
	}
	point, err := pglogrepl.ParseLSN(made.ConsistentPoint)
	if err != nil || point == 0 {
		return slot{}, fmt.Errorf("%w: consistent point %.40q: want an LSN", stream.ErrInvalid, made.ConsistentPoint)
	}
	return slot{name: made.SlotName, point: uint64(point), snapshot: made.SnapshotName}, nil
}

// setFailover has standbys keep a slot that exists.
func (r replication) setFailover(ctx context.Context, name string) error {
	ctx, cancel := r.config.limit(ctx)
	defer cancel()
	_, err := r.conn.Exec(ctx, "ALTER_REPLICATION_SLOT "+quoted(name)+" (FAILOVER true)").ReadAll()
	return because(ctx, err)
}

// start begins the stream of a slot at a place.
func (r replication) start(ctx context.Context, name string, from uint64, publication string) error {
	names := strings.ReplaceAll(quoted(publication), "'", "''")
	return because(ctx, pglogrepl.StartReplication(ctx, r.conn, name, pglogrepl.LSN(from), pglogrepl.StartReplicationOptions{
		Mode: pglogrepl.LogicalReplication, PluginArgs: []string{"proto_version '1'", "publication_names '" + names + "'"},
	}))
}

// received is what the stream sent: a message of pgoutput, or a sign of life.
type received struct {
	message []byte // until the next call; nil: a sign of life
	end     uint64 // of a sign of life: everything before has been sent
	reply   bool   // the server wants an answer
}

// receive waits for the next message. nil: none came until the deadline of ctx.
func (r replication) receive(ctx context.Context) (*received, error) {
	m, err := r.conn.ReceiveMessage(ctx)
	if err != nil {
		if pgconn.Timeout(err) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, nil
		}
		return nil, because(ctx, err)
	}
	switch m := m.(type) {
	case *pgproto3.CopyData:
		return decodeCopy(m.Data)
	case *pgproto3.ErrorResponse:
		return nil, pgconn.ErrorResponseToPgError(m)
	case *pgproto3.NoticeResponse, *pgproto3.ParameterStatus:
		return &received{}, nil
	}
	return nil, fmt.Errorf("the server ended the stream (%T)", m)
}

func decodeCopy(data []byte) (*received, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("%w: an empty message", stream.ErrInvalid)
	}
	switch data[0] {
	case pglogrepl.XLogDataByteID:
		x, err := pglogrepl.ParseXLogData(data[1:])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", stream.ErrInvalid, err)
		}
		return &received{message: x.WALData}, nil
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		k, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", stream.ErrInvalid, err)
		}
		return &received{end: uint64(k.ServerWALEnd), reply: k.ReplyRequested}, nil
	}
	return &received{}, nil // of a newer protocol
}

// confirm tells the server what was received, and that it need not keep what is before a place. ask asks
// for an answer.
func (r replication) confirm(received, safe uint64, ask bool) error {
	return pglogrepl.SendStandbyStatusUpdate(context.Background(), r.conn, pglogrepl.StandbyStatusUpdate{
		WALWritePosition: pglogrepl.LSN(received), WALFlushPosition: pglogrepl.LSN(safe), WALApplyPosition: pglogrepl.LSN(safe),
		ClientTime: time.Now(), ReplyRequested: ask,
	})
}
