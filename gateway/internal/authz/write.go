package authz

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Writes returns an error if the credential of the request is not for writing to the watch.
func (h Handle) Writes(ctx context.Context) *problem.Problem {
	if h.rules.policy == nil || h.rules.who.Writes() {
		return nil
	}
	why := access.NewRefusal(access.CredentialNotUsable, "a ticket is for reading: send the credential that it was made with")
	h.lookup.Record(ctx, access.AuditEntry{Decision: access.Denied, Watch: h.Name(), Status: why.Status, Reason: string(why.Reason)})
	return Refused(why).OnWatch(h.Name())
}

// Put creates or replaces a resource of a writable watch, and waits until reads show it; see
// [stream.Writer]. The error is a *problem.Problem if the rules do not allow it. The result has
// as much of the resource as its principal may read.
func (h Handle) Put(ctx context.Context, r stream.PutRequest) (shown Shown, created bool, err error) {
	var d verdict
	r.By = h.author()
	if h.rules.policy != nil {
		r.Condition = func(old *stream.Resource, value []byte) error { return h.decidePut(&d, r, old, value) }
	}
	stored, created, err := h.watch.Writer().Put(ctx, r)
	e := byUpstream(d.ofPut(r, stored, created), access.Write, err)
	err = h.denied(err)
	h.written(ctx, e, err)
	if err != nil {
		return Shown{}, false, err
	}
	if !r.ValidateOnly {
		readBack(ctx, h.watch, func(s log.Snapshot) bool { return s.Revision() >= stored.Revision })
	}
	return h.readable(stored), created, nil
}

// author returns the principal of the request for upstreams that decide by it: as the cluster knows it whose users the
// gateway has, if there is one. nil: there is no credential, or that cluster does not know the principal.
func (h Handle) author() *stream.Author {
	if h.rules.policy == nil || h.rules.who.IsAnonymous() {
		return nil
	}
	who := h.rules.who.Principal
	rights := h.lookup.config.Rights
	if rights == nil {
		return &stream.Author{Name: who.Name, Groups: who.Groups}
	}
	if user, known := rights.User(who); known {
		return &stream.Author{Name: user.Name, Groups: user.Groups, Authenticated: who.Mechanism == access.Kubernetes, UID: user.UID, Extra: user.Extra}
	}
	return nil
}

// byCluster is the decision about a write that a cluster decides about: it is left to the cluster if that can know the
// principal.
func (h Handle) byCluster() access.Decision {
	if h.author() == nil {
		return access.Decision{Status: http.StatusForbidden, Reason: "the cluster does not know the principal"}
	}
	return access.Decision{Allowed: true}
}

// decidePut returns an error unless the rules allow the write. A hidden resource looks as if it
// did not exist.
func (h Handle) decidePut(v *verdict, r stream.PutRequest, old *stream.Resource, value []byte) error {
	d := h.byCluster()
	if !h.rules.clusterWrites() {
		d = h.rules.policy.Write(h.rules.who.Principal, h.rules.entry, r.Key, old, &stream.Resource{Key: r.Key, Value: value})
	}
	*v = verdict{Decision: d, given: true}
	switch {
	case d.Allowed:
		return nil
	case d.Status == http.StatusNotFound && r.IfRevision != nil && *r.IfRevision != 0:
		return &stream.ConflictError{Key: r.Key, Want: *r.IfRevision}
	}
	return h.refused(d, r.Key)
}

// Changeable reports whether the rules allow to replace the resource with a key by itself, and
// to delete it. Where a cluster decides, that is not known before a write, and counts as allowed. Nothing is said of a resource that is hidden from the principal: it looks as if
// it did not exist.
func (h Handle) Changeable(key string) (put, deletes bool) {
	if !h.MayWrite() {
		return false, false
	}
	old, there := h.watch.Snapshot().Get(key)
	if !there {
		return false, false
	}
	if h.rules.policy == nil {
		return true, true
	}
	if h.rules.clusterWrites() {
		may, ok := h.rules.definition()
		if ok && may != nil {
			_, ok, _ = show(old, may)
		}
		return ok, ok
	}
	who, entry := h.rules.who.Principal, h.rules.entry
	return h.rules.policy.Write(who, entry, key, &old, &old).Allowed, h.rules.policy.Delete(who, entry, key, &old).Allowed
}

// readable returns as much of a resource as its principal may read. That is at least its key
// and its revision.
func (h Handle) readable(r stream.Resource) Shown {
	may, ok := h.rules.definition()
	if ok && may == nil {
		return whole(r)
	}
	if ok {
		if part, seen, err := show(r, may); seen && err == nil {
			return part
		}
	}
	return Shown{Resource: stream.Resource{Key: r.Key, Revision: r.Revision, Value: []byte("null")}}
}

// Delete removes a resource of a writable watch, and waits until reads show it; see
// [stream.Writer]. The error is a *problem.Problem if the rules do not allow it.
func (h Handle) Delete(ctx context.Context, r stream.DeleteRequest) (deleted bool, err error) {
	var d verdict
	r.By = h.author()
	if h.rules.policy != nil {
		r.Condition = func(old *stream.Resource) error { return h.decideDelete(&d, r, old) }
	}
	before, _ := h.watch.Snapshot().Get(r.Key)
	deleted, err = h.watch.Writer().Delete(ctx, r)
	if errors.Is(err, errHidden) {
		deleted, err = false, nil
	}
	e := byUpstream(d.ofDelete(r, deleted), access.Delete, err)
	err = h.denied(err)
	h.written(ctx, e, err)
	if deleted && !r.ValidateOnly {
		readBack(ctx, h.watch, func(s log.Snapshot) bool {
			now, there := s.Get(r.Key)
			return !there || now.Revision != before.Revision
		})
	}
	return deleted, err
}

// errHidden means that, for this principal, there is nothing to delete.
var errHidden = errors.New("there is no such resource")

// decideDelete is decidePut for deletes.
func (h Handle) decideDelete(v *verdict, r stream.DeleteRequest, old *stream.Resource) error {
	d := h.byCluster()
	if !h.rules.clusterWrites() {
		d = h.rules.policy.Delete(h.rules.who.Principal, h.rules.entry, r.Key, old)
	}
	*v = verdict{Decision: d, given: true}
	if old != nil {
		v.revision = old.Revision
	}
	switch {
	case d.Allowed:
		return nil
	case d.Status != http.StatusNotFound:
		return h.refused(d, r.Key)
	case r.IfRevision != nil && *r.IfRevision != 0:
		return &stream.ConflictError{Key: r.Key, Want: *r.IfRevision}
	}
	return errHidden
}

// refused returns the answer to a write that the rules do not allow. Without a credential it is a
// 401, since one may help.
func (h Handle) refused(d access.Decision, key string) error {
	if d.Status == http.StatusNotFound {
		return problem.New(http.StatusNotFound, "watch %q has no resource with the key %q that you may write", h.Name(), key).OnWatch(h.Name()).OnKey(key)
	}
	if h.rules.who.IsAnonymous() {
		text := fmt.Sprintf("no rule of watch %q lets you do this with the key %q without a credential: send Authorization: Bearer", h.Name(), key)
		return h.lookup.missing(text).OnWatch(h.Name()).OnKey(key)
	}
	return problem.New(http.StatusForbidden, "no rule of watch %q lets you do this with the key %q", h.Name(), key).OnWatch(h.Name()).OnKey(key)
}

// denied returns the answer to a write that the upstream does not let its author make. Without a credential it is a
// 401, since one may help.
func (h Handle) denied(err error) error {
	if denied := new(stream.DeniedError); errors.As(err, &denied) && h.rules.policy != nil && h.rules.who.IsAnonymous() {
		return h.lookup.missing(denied.Error() + ": send Authorization: Bearer").OnWatch(h.Name()).OnKey(denied.Key)
	}
	return err
}

// readBackWait is the longest time for which a write waits until reads show it. After that it
// is answered anyway, since it has succeeded.
const readBackWait = time.Second

// readBack waits until seen reports that the watch shows the write, so that a
// client that reads here after the answer to its write sees it.
func readBack(ctx context.Context, w *watch.Watch, seen func(log.Snapshot) bool) {
	if seen(w.Snapshot()) {
		return
	}
	sub := w.Subscribe(log.SubscribeOptions{})
	defer sub.Close()
	timer := time.NewTimer(readBackWait)
	defer timer.Stop()
	var batch log.Batch
	for {
		sub.Next(&batch) // Changed refers to the version that Next saw
		if seen(w.Snapshot()) {
			return
		}
		select {
		case <-sub.Changed():
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
