package kubernetes

import (
	"encoding/json"
	"fmt"

	"github.com/watchtide/watchtide/stream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reached is the position of the watch after an event.
type reached struct {
	revision uint64
	bookmark bool // nothing but a position
	initial  bool // ends the initial events
}

// apply passes one event to the sink, and does not commit it.
func (f *follower) apply(e event) (reached, error) {
	defer f.client.hold(-e.held)
	switch e.Type {
	case bookmark:
		return f.applyBookmark(e)
	case failed:
		return reached{}, parseStatus(e.Object)
	case added, modified, deleted:
		return f.applyObject(e)
	}
	return reached{}, invalid("an event of type %.40q: want %s, %s, %s, %s or %s",
		e.Type, added, modified, deleted, bookmark, failed)
}

// applyBookmark advances the position, which never goes back.
func (f *follower) applyBookmark(e event) (reached, error) {
	at, err := parseBookmark(e.Object)
	if err != nil || f.seen == 0 {
		return at, err
	}
	if at.revision < f.seen {
		return at, fmt.Errorf("%w: a bookmark at resourceVersion %d after %d", stream.ErrOrder, at.revision, f.seen)
	}
	f.seen = at.revision
	return at, nil
}

// applyObject passes a change of an object to the sink. Behind a snapshot each change
// has a resourceVersion of its own, and they rise.
func (f *follower) applyObject(e event) (reached, error) {
	r, err := parseObject(e.Object, typeMeta{})
	if err != nil {
		return reached{}, err
	}
	if f.seen > 0 {
		if r.Revision <= f.seen {
			return reached{}, fmt.Errorf("%w: %.200q changed at resourceVersion %d, after %d", stream.ErrOrder, r.Key, r.Revision, f.seen)
		}
		f.seen = r.Revision
	}
	if e.Type == deleted {
		err = f.sink.Delete(r.Key, r.Revision)
	} else {
		err = f.sink.Upsert(r)
	}
	return reached{revision: r.Revision}, f.sinkError(err)
}

// parseBookmark reads an object that has only a resourceVersion, and
// perhaps the mark that ends the initial events.
func parseBookmark(raw []byte) (reached, error) {
	var of struct {
		Metadata struct {
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return reached{}, invalid("a bookmark: %v", err)
	}
	revision, err := parseRevision(of.Metadata.ResourceVersion)
	initial := of.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
	return reached{revision: revision, bookmark: true, initial: initial}, err
}

// parseStatus converts an event of type ERROR to an error.
func parseStatus(raw []byte) error {
	var status metav1.Status
	if err := json.Unmarshal(raw, &status); err != nil || status.Message == "" && status.Reason == "" {
		return invalid("an event of type ERROR without a reason: %.80q", raw)
	}
	return &apierrors.StatusError{ErrStatus: status}
}
