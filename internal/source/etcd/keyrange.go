package etcd

import (
	"fmt"
	"strings"

	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

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
