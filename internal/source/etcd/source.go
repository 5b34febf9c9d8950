package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// attempts is how often a watch that was overtaken by a compaction before its
// first commit is reopened immediately.
const attempts = 5

// Source follows the keys of one cluster that begin with a prefix. It is a
// [stream.Source].
//
// Watch is called by one goroutine at a time.
type Source struct {
	// Static after construction.
	config    Config
	endpoints []endpoint
	keys      keyRange

	// Owned by Watch.
	at         int // endpoint to try next
	epochs     epochs
	checkpoint checkpoint // as of the last commit
	plain      bool       // the next connection asks for no history: the last one failed with it
}

var (
	_ stream.Source      = (*Source)(nil)
	_ stream.Recognising = (*Source)(nil)
)

// New returns a Source; it connects when Watch is called. The error reports an
// invalid configuration.
func New(c Config) (*Source, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	endpoints, err := c.endpoints()
	if err != nil {
		return nil, err
	}
	c.setDefaults()
	return &Source{
		config: c, endpoints: endpoints, keys: newKeyRange(c.Prefix),
		at: rand.IntN(len(endpoints)), epochs: newEpochs(c.Prefix, c.Values),
	}, nil
}

// Recognise implements [stream.Recognising]: the newest resources, and their number, are compared with what the
// cluster had at that revision.
func (s *Source) Recognise(at stream.Resume, resources, _ iter.Seq[stream.Resource]) {
	s.checkpoint = recalled(at, s.keys, resources)
}

// Watch implements [stream.Source]. It follows the first member that answers.
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	var failures []error
	largest := cmp.Or(stream.LargestMessage(sink, 0), math.MaxInt32)
	for range s.endpoints {
		e := s.endpoints[s.at]
		on, err := s.connect(ctx, e, largest)
		if err == nil {
			err = s.visit(ctx, on, resume, sink)
			on.close()
			return s.ended(ctx, e, err)
		}
		if err = s.ended(ctx, e, err); ctx.Err() != nil || refused(err) {
			return err
		}
		failures = append(failures, err)
	}
	return noneOf(failures)
}

// ended returns the error of Watch after the context ended or a member failed.
// After a failure the next endpoint is used.
func (s *Source) ended(ctx context.Context, e endpoint, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	s.at = (s.at + 1) % len(s.endpoints)
	return s.failed(e, err)
}

// visit follows a member until the connection ends.
func (s *Source) visit(ctx context.Context, on *connection, resume stream.Resume, sink stream.Sink) error {
	epoch, from, err := s.recall(ctx, on, resume)
	if err != nil {
		return err
	}
	for range attempts {
		var committed bool
		committed, err = s.follow(ctx, on, epoch, from, sink)
		if !errors.Is(err, rpctypes.ErrCompacted) {
			return err
		}
		if committed {
			break
		}
		from = 0
	}
	return fmt.Errorf("%w: %w", stream.ErrUnresumable, err)
}

// recall determines whether the cluster's store is the known one, and the
// revision to resume from; 0: none.
func (s *Source) recall(ctx context.Context, on *connection, resume stream.Resume) (epoch string, from uint64, err error) {
	known := same
	if s.checkpoint.revision != 0 && s.checkpoint.cluster == 0 && s.epochs.adopt(on.cluster, resume.Epoch) {
		s.checkpoint.cluster = on.cluster
	}
	if s.checkpoint.revision != 0 && s.checkpoint.cluster == on.cluster {
		ctx, cancel := s.limit(ctx)
		defer cancel()
		if known, err = s.checkpoint.verify(ctx, on, s); err != nil {
			return "", 0, because(ctx, err)
		}
	}
	ours := resume.Revision != 0 && resume.Epoch == s.epochs.of(on.cluster)
	if known == replaced || ours && resume.Revision > on.revision {
		s.replace(on.cluster)
		ours = false
	}
	if ours && known == same {
		from = resume.Revision
	}
	return s.epochs.of(on.cluster), from, nil
}

// replace records that the cluster's store was replaced.
func (s *Source) replace(cluster uint64) {
	s.epochs.replace(cluster)
	s.checkpoint = checkpoint{}
}

// follow follows one watch to its end.
func (s *Source) follow(ctx context.Context, on *connection, epoch string, from uint64, sink stream.Sink) (committed bool, err error) {
	f, err := s.open(ctx, on, epoch, from, sink)
	if err != nil {
		return false, err
	}
	defer f.close()
	err = f.run()
	s.plain = f.recalled && !f.committed
	return f.committed, err
}

// limit bounds one request.
func (s *Source) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.config.RequestTimeout, s.late())
}

func (s *Source) late() error {
	return fmt.Errorf("%w: no answer to a request within %v", stream.ErrStalled, s.config.RequestTimeout)
}

// because returns the cause of the context if it has ended, instead of err,
// which then only reports the end.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// refused reports whether every member would give the same answer.
func refused(err error) bool {
	return slices.ContainsFunc([]error{
		rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty,
	}, func(known error) bool { return errors.Is(err, known) })
}

// keyRange is etcd's form of the keys that begin with a prefix: those from start
// up to, and without, end. An end of "\x00" means no end.
type keyRange struct {
	prefix, start, end string
}

func newKeyRange(prefix string) keyRange {
	if prefix == "" {
		return keyRange{start: "\x00", end: "\x00"}
	}
	return keyRange{prefix: prefix, start: prefix, end: clientv3.GetPrefixRangeEnd(prefix)}
}

// check rejects a key outside the range, or without a revision.
func (k keyRange) check(kv *mvccpb.KeyValue) error {
	switch {
	case !strings.HasPrefix(string(kv.GetKey()), k.prefix):
		return fmt.Errorf("%w: key %.80q: want one that begins with %q", stream.ErrInvalid, kv.GetKey(), k.prefix)
	case kv.GetModRevision() <= 0:
		return fmt.Errorf("%w: key %.80q has revision %d: want 1 or more", stream.ErrInvalid, kv.GetKey(), kv.GetModRevision())
	}
	return nil
}

// key returns the key of a resource.
func (k keyRange) key(raw []byte) string { return string(raw[len(k.prefix):]) }

// resource makes a resource of a stored key. The value is not copied: each
// message of the server has its own bytes.
func (s *Source) resource(kv *mvccpb.KeyValue) stream.Resource {
	value, encoding := s.config.Values.Value(kv.Value)
	return stream.Resource{Key: s.keys.key(kv.Key), Revision: uint64(kv.ModRevision), Value: value, Encoding: encoding}
}

// String returns the range as a permission must grant it.
func (k keyRange) String() string {
	switch {
	case k.prefix == "":
		return `all keys (etcdctl role grant-permission ROLE read --prefix "")`
	case k.end == "\x00":
		return fmt.Sprintf("the keys from %q on (etcdctl role grant-permission ROLE read --prefix %q)", k.start, k.prefix)
	}
	return fmt.Sprintf("the keys from %q up to, without, %q (etcdctl role grant-permission ROLE read --prefix %q)", k.start, k.end, k.prefix)
}
