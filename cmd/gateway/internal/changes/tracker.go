package changes

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/watchtide/watchtide/client"
)

// Handler is told of changes, and of what becomes known.
type Handler interface {
	// Change handles an upsert or a delete. It is repeated after an error, by the process that
	// follows the watches next.
	Change(client.Event) error
	// Record stores a record that a Known of a later process is to be made of. A pending one
	// must not be lost when Record has returned. Of the others the newest may be.
	Record(Record) error
}

// Tracker tells changes from repetitions in a stream of events.
//
// An upsert is a change if the known version of the resource has another value or another
// revision. After a reset that does not keep the order of revisions, only values are
// compared. A resource that a snapshot lacks is deleted at its end.
//
// Owned by one goroutine.
type Tracker struct {
	known    *Known
	handler  Handler
	followed map[string]*followed
}

// followed is how far the stream of one watch has come.
type followed struct {
	*watch
	name     string
	snapshot uint32 // number of the newest snapshot
	loading  bool   // the snapshot is not complete
	// byValue: known revisions may be of another order than those that come.
	byValue bool
}

// NewTracker returns a tracker of the watches of k, which it changes from now on.
func NewTracker(k *Known, h Handler) *Tracker {
	t := &Tracker{known: k, handler: h, followed: map[string]*followed{}}
	for name, w := range k.watches {
		t.followed[name] = &followed{watch: w, name: name}
	}
	return t
}

// Event handles an event of [client.Client.Watch]. An error is that of the handler.
func (t *Tracker) Event(e client.Event) error {
	if f := t.followed[e.Watch]; f != nil {
		if err := t.apply(f, e); err != nil {
			return err
		}
	}
	if e.ID == "" {
		return nil
	}
	return t.passed(e.ID)
}

// passed records that a position was reached. In a snapshot there is none to continue
// from: a later process would not know which resources the snapshot had before it.
func (t *Tracker) passed(position string) error {
	for _, f := range t.followed {
		if f.loading {
			return nil
		}
	}
	return t.setPosition(position)
}

func (t *Tracker) setPosition(position string) error {
	if position == t.known.position {
		return nil
	}
	t.known.position = position
	return t.handler.Record(Record{Position: &position})
}

func (t *Tracker) apply(f *followed, e client.Event) error {
	switch e.Type {
	case client.Reset:
		f.loading = true
		f.snapshot++
		f.byValue = f.byValue || !keepsOrder(e.Reason)
		return t.setPosition("") // what becomes known from here on does not belong to it
	case client.Upsert:
		return t.upsert(f, e)
	case client.Delete:
		return t.delete(f, e)
	case client.EndOfSnapshot:
		return t.complete(f, e.Revision)
	}
	return nil
}

// keepsOrder reports whether revisions after a reset can be compared with those before it.
func keepsOrder(reason client.Reason) bool {
	return reason == client.ResetExpired || reason == client.ResetAhead
}

// change has a change handled. If the process ends before it is recorded that it was, the next
// one must know which resource to have handled again, whatever has become of it.
func (t *Tracker) change(f *followed, e client.Event) error {
	if !f.watch.complete {
		return nil
	}
	n, pending := nameOf(e.Resource), version{seen: f.snapshot}
	f.versions[n] = pending
	if err := t.handler.Record(putRecord(f.name, n, pending)); err != nil {
		return err
	}
	return t.handler.Change(e)
}

func (t *Tracker) upsert(f *followed, e client.Event) error {
	v, err := versionOf(e.Resource)
	if err != nil {
		return err
	}
	n := nameOf(e.Resource)
	old, had := f.versions[n]
	v.seen = f.snapshot
	if had && old.hash == v.hash && old.revision == v.revision {
		f.versions[n] = v
		return nil
	}
	if same := had && old.hash == v.hash && f.byValue; !same {
		if err := t.change(f, e); err != nil {
			return err
		}
	}
	f.versions[n] = v
	return t.handler.Record(putRecord(f.name, n, v))
}

func (t *Tracker) delete(f *followed, e client.Event) error {
	n := nameOf(e.Resource)
	if _, had := f.versions[n]; !had {
		return nil
	}
	if err := t.change(f, e); err != nil {
		return err
	}
	delete(f.versions, n)
	return t.handler.Record(goneRecord(f.name, n))
}

// complete ends a snapshot: what it lacks is deleted.
func (t *Tracker) complete(f *followed, revision string) error {
	if !f.loading {
		return nil
	}
	for _, n := range f.missing() {
		if err := t.delete(f, deleted(f.name, n, revision)); err != nil {
			return err
		}
	}
	f.loading, f.byValue = false, false
	if f.watch.complete {
		return nil
	}
	f.watch.complete = true
	return t.handler.Record(Record{Watch: f.name, Complete: true})
}

// missing returns the resources that the newest snapshot lacks, in order.
func (f *followed) missing() (names []name) {
	for n, v := range f.versions {
		if v.seen != f.snapshot {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(a, b name) int { return client.CompareIDs(a.key, b.key) })
	return names
}

// deleted returns the event for a resource that a snapshot lacks. The revision is that of the
// snapshot.
func deleted(watch string, n name, revision string) client.Event {
	e := client.Event{Type: client.Delete, Watch: watch, Resource: client.Resource{Key: n.key, Revision: revision, KeyEncoding: n.encoding}}
	var line bytes.Buffer
	out := json.NewEncoder(&line)
	out.SetEscapeHTML(false)
	_ = out.Encode(struct { // strings and a buffer: there is no error
		Type        client.EventType `json:"type"`
		Watch       string           `json:"watch"`
		Key         string           `json:"key"`
		Revision    string           `json:"revision"`
		KeyEncoding string           `json:"key_encoding,omitempty"`
	}{e.Type, e.Watch, n.key, revision, n.encoding})
	e.Data = bytes.TrimSuffix(line.Bytes(), []byte("\n"))
	return e
}
