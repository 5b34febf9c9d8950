package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Difference is what makes what is held of a watch a state of the server.
type Difference struct {
	// Upserts are the resources that are held with another value, or not at all.
	Upserts []Resource
	// Extra has the IDs of those that are held, and that the server does not have.
	Extra []string
	// Revisions are those of the resources of the state by their IDs, as far as they were read: all of them,
	// or those in the buckets that differ.
	Revisions map[string]string
}

// ErrTooDifferent means that a snapshot costs less than to find out what differs.
var ErrTooDifferent = errors.New("too much differs: a snapshot costs less")

// mostDiffering is of how many resources of a state one may differ.
const mostDiffering = 4

// limit refuses to read so many resources that a snapshot costs less.
func (d *difference) limit(wanted []keyHash) error {
	if len(wanted) > max(d.count/mostDiffering, readAtOnce) {
		return fmt.Errorf("%w: %d of %d resources", ErrTooDifferent, len(wanted), d.count)
	}
	return nil
}

// Difference finds out how what is held of a watch differs from the state of the server that has a digest, as an
// end_of_snapshot or a bookmark has it. A digest says nothing about revisions: with revisions, those of all resources
// are read, which takes about a tenth of the bytes of a snapshot. The server keeps a state for some seconds; once it
// does not, the error is a *Problem with the status 410. While the server has no answer for now, it is asked again; if
// that takes too long, the error is ErrUnavailable.
func (c *Client) Difference(ctx context.Context, watch string, v View, digest string, held iter.Seq[Resource], revisions bool) (Difference, error) {
	r, d := newReplica(watch, func(Resource) (struct{}, error) { return struct{}{}, nil }), newDifference(c, watch, v, digest)
	for one := range held {
		r.upserts[one.ID()] = row[struct{}]{hash: one.hash()}
	}
	equal := r.matches(digest)
	if equal && !revisions {
		return Difference{}, nil
	}
	ctx, cancel := d.within(ctx)
	defer cancel()
	buckets, err := r.toRead(ctx, d, revisions)
	if err != nil {
		return Difference{}, err
	}
	theirs, err := d.keys(ctx, buckets)
	if err != nil {
		return Difference{}, err
	}
	found := Difference{Revisions: make(map[string]string, len(theirs))}
	for id, k := range theirs {
		found.Revisions[id] = k.revision
	}
	wanted, extra := r.dropExtra(theirs, buckets, d.buckets)
	if err := d.limit(wanted); err != nil {
		return Difference{}, err
	}
	found.Extra = extra
	err = d.read(ctx, wanted, func(one Resource) error {
		found.Upserts = append(found.Upserts, one)
		return r.Apply(Event{Type: Upsert, Watch: watch, Resource: one})
	})
	if err == nil && !r.matches(digest) {
		err = fmt.Errorf("%w: what was read has another digest", ErrInvalid)
	}
	return found, err
}

// verifyEach is how much longer Difference may take for each resource.
const verifyEach = 50 * time.Microsecond

// toRead returns the buckets whose keys are to be read: all, or those that differ.
func (r *Replica[V]) toRead(ctx context.Context, d *difference, all bool) (map[int]bool, error) {
	if !all {
		return r.differing(ctx, d)
	}
	buckets := make(map[int]bool, d.buckets)
	for b := range d.buckets {
		buckets[b] = true
	}
	return buckets, nil
}
