package etcd

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"

	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// checkpoint is the remembered part of a cluster's history, by which it is recognised:
// a cluster that was restored from a backup has the same id, and may by now have as
// many revisions as before. It outlives connections.
type checkpoint struct {
	cluster  uint64   // 0: another process has read it, and it is the one that the epoch names
	revision uint64   // everything up to here was committed; 0: nothing was
	count    int64    // keys of the range at that revision; below 0: not known
	traces   [8]trace // of the most recently changed keys
}

// trace is one key's last change.
type trace struct {
	key                       string
	revision, create, version int64 // revision 0: there is no trace
	value                     uint64
	deleted                   bool
	served                    bool // it is of the resource; create and version are not known
}

var valueSeed = maphash.MakeSeed()

func traceOf(kv *mvccpb.KeyValue, deleted bool) trace {
	return trace{
		key: string(kv.Key), deleted: deleted, value: maphash.Bytes(valueSeed, kv.Value),
		revision: kv.ModRevision, create: kv.CreateRevision, version: kv.Version,
	}
}

// traceOfServed is what a resource tells of its key.
func traceOfServed(key string, r stream.Resource) trace {
	var h maphash.Hash
	h.SetSeed(valueSeed)
	h.WriteString(r.Encoding)
	h.WriteByte(0)
	h.Write(r.Value)
	return trace{key: key, revision: int64(r.Revision), value: h.Sum64(), served: true}
}

// recalled is the checkpoint of another process, which ended at a place with these resources.
func recalled(at stream.Resume, keys keyRange, resources iter.Seq[stream.Resource]) checkpoint {
	k := checkpoint{revision: at.Revision}
	for r := range resources {
		k.count++
		if last := k.oldest(); int64(r.Revision) > last.revision {
			*last = traceOfServed(keys.prefix+r.Key, r)
		}
	}
	return k
}

// oldest is the trace that the next one replaces.
func (k *checkpoint) oldest() *trace {
	at := &k.traces[0]
	for i := range k.traces {
		if k.traces[i].revision < at.revision {
			at = &k.traces[i]
		}
	}
	return at
}

// newCheckpoint remembers only the position.
func newCheckpoint(cluster, revision uint64) checkpoint {
	return checkpoint{cluster: cluster, revision: revision, count: -1}
}

// knownAt returns the checkpoint at the position from which a watch resumes. The
// number of keys is queried where the member cannot report how far its watch is.
func (s *Source) knownAt(ctx context.Context, on *connection, from uint64) (checkpoint, error) {
	k := s.checkpoint
	if k.cluster != on.cluster || k.revision != from {
		k = newCheckpoint(on.cluster, from)
	}
	if from == 0 || on.ordered || k.count >= 0 {
		return k, nil
	}
	answer, err := on.client.Get(ctx, s.keys.start, clientv3.WithRange(s.keys.end), clientv3.WithCountOnly(), clientv3.WithRev(int64(from)))
	if err != nil {
		return k, err
	}
	k.count = answer.Count
	return k, nil
}

// see records a key from a list or a change.
func (k *checkpoint) see(kv *mvccpb.KeyValue, deleted bool) {
	at := k.oldest()
	if kv.ModRevision <= at.revision {
		return
	}
	for i := range k.traces {
		if k.traces[i].key == string(kv.Key) && k.traces[i].revision != 0 {
			at = &k.traces[i]
			break
		}
	}
	if at.revision < kv.ModRevision {
		*at = traceOf(kv, deleted)
	}
}

// change counts what an event changes; while a list is being read, the count
// comes later.
func (k *checkpoint) change(e *clientv3.Event) {
	deleted := e.Type == clientv3.EventTypeDelete
	k.see(e.Kv, deleted)
	switch {
	case k.count < 0:
	case deleted:
		k.count--
	case e.IsCreate():
		k.count++
	}
}

// verdict is the result of comparing a cluster with a checkpoint.
type verdict uint8

const (
	same     verdict = iota // it is as remembered
	replaced                // it is another store
	unknown                 // that revision was compacted
)

// verify asks a member whether its store is the remembered one.
func (k *checkpoint) verify(ctx context.Context, on *connection, s *Source) (verdict, error) {
	if on.revision < k.revision {
		return replaced, nil
	}
	asked := k.asked()
	queries := k.queries(asked, s.keys)
	answer, err := on.client.Txn(ctx).Then(queries...).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return unknown, nil
	case errors.Is(err, rpctypes.ErrFutureRev):
		return replaced, nil
	case err != nil:
		return unknown, err
	case len(answer.Responses) != len(queries):
		return unknown, fmt.Errorf("%w: %d answers to %d queries", stream.ErrInvalid, len(answer.Responses), len(queries))
	}
	for i, t := range asked {
		if !t.fits(answer.Responses[i].GetResponseRange().Kvs, s) {
			return replaced, nil
		}
	}
	if n := len(asked); k.count >= 0 && answer.Responses[n].GetResponseRange().Count != k.count {
		return replaced, nil
	}
	return same, nil
}

// asked are the traces in use.
func (k *checkpoint) asked() (asked []trace) {
	for _, t := range k.traces {
		if t.revision != 0 {
			asked = append(asked, t)
		}
	}
	return asked
}

// queries reads each key as of the remembered revision, and counts.
func (k *checkpoint) queries(asked []trace, keys keyRange) (ops []clientv3.Op) {
	at := clientv3.WithRev(int64(k.revision))
	for _, t := range asked {
		ops = append(ops, clientv3.OpGet(t.key, at))
	}
	if k.count >= 0 {
		ops = append(ops, clientv3.OpGet(keys.start, clientv3.WithRange(keys.end), clientv3.WithCountOnly(), at))
	}
	return ops
}

// fits reports whether a read of the key agrees with the trace.
func (t trace) fits(kvs []*mvccpb.KeyValue, s *Source) bool {
	switch {
	case t.deleted || len(kvs) != 1:
		return t.deleted && len(kvs) == 0
	case t.served:
		return traceOfServed(t.key, s.resource(kvs[0])) == t
	}
	return traceOf(kvs[0], false) == t
}
