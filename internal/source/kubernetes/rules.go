package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/watchtide/watchtide/stream"
)

// rulesOf are the resources of rulesGroup whose objects say what RBAC allows.
var rulesOf = [...]string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}

const (
	rulesGroup = "rbac.authorization.k8s.io"
	// maxRulesBytes is how much of one of them may be held at a time.
	maxRulesBytes = 32 << 20
)

// FollowRules calls changed when what RBAC allows may have changed: with the namespace of a role or a binding,
// or with "" where it may have changed anywhere, as at the begin. It may be called from any goroutine. The error
// says why the rules cannot be followed any more.
func (r *Reviewer) FollowRules(ctx context.Context, changed func(namespace string)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, resource := range rulesOf {
		c := r.config
		c.Objects, c.maxObject = Objects{Group: rulesGroup, Version: "v1", Resource: resource}, 0
		source, err := New(c)
		if err != nil {
			cancel(err)
			break
		}
		running.Go(func() {
			defer source.Close()
			err := source.Watch(ctx, stream.Resume{}, &ruleSink{changed: changed})
			cancel(fmt.Errorf("%s ended: %w", resource, orEnded(err)))
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// orEnded returns an error, or if that is nil, that the server has ended a watch.
func orEnded(err error) error {
	if err == nil {
		return fmt.Errorf("the server has ended the watch")
	}
	return err
}

// ruleSink tells of changes, and keeps nothing of them.
type ruleSink struct {
	stream.PlainSink
	changed  func(namespace string)
	snapshot bool // one is under way
}

var _ stream.Sink = (*ruleSink)(nil)

// MaxBytes implements [stream.SinkExtension].
func (s *ruleSink) MaxBytes() int64 { return maxRulesBytes }

// Reset implements [stream.Sink].
func (s *ruleSink) Reset(string) error {
	s.snapshot = true
	return nil
}

// Upsert implements [stream.Sink].
func (s *ruleSink) Upsert(r stream.Resource) error {
	s.tell(r.Key)
	return nil
}

// Delete implements [stream.Sink].
func (s *ruleSink) Delete(key string, _ uint64) error {
	s.tell(key)
	return nil
}

func (s *ruleSink) tell(key string) {
	if !s.snapshot {
		namespace, _, _ := strings.Cut(key, "/")
		if namespace == key {
			namespace = "" // it is not in one
		}
		s.changed(namespace)
	}
}

// Commit implements [stream.Sink].
func (s *ruleSink) Commit(uint64) error {
	if s.snapshot {
		s.snapshot = false
		s.changed("")
	}
	return nil
}

// Status implements [stream.Sink].
func (s *ruleSink) Status(stream.State, string) error { return nil }
