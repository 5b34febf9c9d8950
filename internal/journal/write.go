package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/log"
)

// Tests change the following, before a journal is opened.
var (
	// TransactionBytes bounds one transaction: its pages are in memory until it is on the disk.
	TransactionBytes = 8 << 20
	// SweptFrom is how many deletes the file may have beyond twice those that count.
	SweptFrom = uint64(1024)
)

// mostSwept bounds the deletes that are forgotten in one transaction.
const mostSwept = 4096

// part is what is to be written of a watch.
type part struct {
	of    *Watch
	state log.Snapshot
	from  uint64    // entries after this seq; with all, of no interest
	all   bool      // everything is written
	drop  bool      // what the file has is dropped, if all is written
	large bool      // it needs several transactions
	idle  bool      // nothing but the revision has changed, and that can wait
	ends  time.Time // until when the last write may take; zero: it is not the last one
}

// next returns what is to be written now; nil: nothing is.
func (w *Watch) next(now time.Time) *part {
	p := w.newest()
	switch {
	case p == nil || !p.all && p.state.Seq() == w.seq && p.same(&w.stored):
		return nil
	case !p.all && p.state.Seq() == w.seq:
		p.idle = now.Sub(w.stored.Written) < idleEvery && p.state.Record().Origin == w.stored.Origin
	}
	return p
}

// same reports whether the file has what the log knows.
func (p *part) same(r *record) bool {
	now := p.state.Record()
	return now.Revision == r.Revision && now.DeletesCompleteTo == r.DeletesCompleteTo && now.Origin == r.Origin && now.Horizon == r.Horizon &&
		now.OriginPending == r.OriginPending && now.RunHorizon == r.RunHorizon
}

// newest returns all that the file does not have; nil: there is no state that it could have.
func (w *Watch) newest() *part {
	p := &part{of: w, state: w.log.Snapshot(), from: w.seq}
	if w.unfit || !p.state.Primed() {
		return nil
	}
	// A delete that the log has forgotten already is not among the entries.
	lacks := p.state.Forgotten() > w.seq && w.seq < p.state.Intact()
	p.all = !w.stored.Whole || p.state.Generation() != w.generation || lacks
	if p.drop = p.all; p.all {
		p.from = 0
	}
	bytes := 0
	for e := range p.entries() {
		if bytes += e.Bytes(); bytes > TransactionBytes {
			p.large = true
			break
		}
	}
	return p
}

// entries returns the entries that count, and the deletes of keys that were created again since.
func (p *part) entries() iter.Seq[log.Entry] {
	return func(yield func(log.Entry) bool) {
		for e := range p.state.Entries(p.from) {
			if (p.state.Counts(e) || e.Deleted() && !p.all) && !yield(e) {
				return
			}
		}
	}
}

// writeSmall writes some watches in one transaction.
func (j *Journal) writeSmall(parts []*part) {
	records := make([]record, len(parts))
	n := 0
	err := j.update(func(tx *disk.Tx) error {
		for i, p := range parts {
			t, err := p.begin(tx)
			if err != nil {
				return err
			}
			for e := range p.entries() {
				n++
				if err := t.put(e); err != nil {
					return err
				}
			}
			if err := t.finish(true); err != nil {
				return err
			}
			records[i] = t.record
		}
		return nil
	})
	if j.refused(err) {
		return
	}
	for i, p := range parts {
		p.wrote(records[i])
	}
	j.written.Add(uint64(n))
}

// unfitError reports a resource that the file cannot have.
type unfitError struct{ watch *Watch }

func (e *unfitError) Error() string { return "a resource does not fit into the journal" }

// refused reports whether a transaction has failed. A watch that does not fit is dropped.
func (j *Journal) refused(err error) bool {
	var unfit *unfitError
	if errors.As(err, &unfit) {
		w := unfit.watch
		w.unfit, w.stored.Whole = true, false
		j.config.Logger.Warn("a watch is not kept in the journal: the key of a resource has none or more than 32,768 bytes, or its value has more than 1 GiB", "watch", w.name)
		err = j.update(func(tx *disk.Tx) error {
			all, err := tx.MakeBucket(watchesBucket)
			if err != nil {
				return err
			}
			return all.DropBucket([]byte(w.name))
		})
		j.notify() // the other watches of the transaction
		if err == nil {
			return true
		}
	}
	if err != nil {
		j.fail(err)
	}
	return err != nil
}

// wrote records what the file has.
func (p *part) wrote(r record) {
	w := p.of
	w.stored, w.seq, w.generation = r, p.state.Seq(), p.state.Generation()
}

// transaction writes one watch.
type transaction struct {
	*part
	record                   record
	bucket, entries, deletes *disk.Bucket
	at                       int64
}

// begin opens the buckets of a watch, and drops what they have if all is to be written.
func (p *part) begin(tx *disk.Tx) (t *transaction, err error) {
	t = &transaction{part: p, record: p.of.stored, at: time.Now().UnixMilli()}
	if t.bucket, err = openBucket(tx, p.of.name); err != nil {
		return nil, err
	}
	if p.drop {
		t.record.Deletes = tally{}
		for _, name := range [][]byte{entriesBucket, deletesBucket} {
			if err := t.bucket.DropBucket(name); err != nil {
				return nil, err
			}
		}
	}
	return t, t.open()
}

func (t *transaction) open() (err error) {
	if t.entries, err = t.bucket.MakeBucket(entriesBucket); err != nil {
		return err
	}
	t.entries.Inserted()
	t.deletes, err = t.bucket.MakeBucket(deletesBucket)
	return err
}

// The flags of a value.
const (
	isBase64 = 1 << iota
	isUnnumbered
)

// put writes an entry.
func (t *transaction) put(e log.Entry) error {
	r := e.Resource()
	if !fits(&r) {
		return &unfitError{t.of}
	}
	if !e.Deleted() {
		flags := byte(0)
		if r.Encoding != "" {
			flags = isBase64
		}
		head := binary.BigEndian.AppendUint64([]byte{flags}, e.Seq())
		head = binary.AppendUvarint(head, e.Place())
		_, err := t.entries.PutParts([]byte(r.Key), head, r.Value)
		return err
	}
	if err := t.entries.Delete([]byte(r.Key)); err != nil || !t.state.Counts(e) {
		return err
	}
	flags := byte(0)
	if e.Unnumbered() {
		flags = isUnnumbered
	}
	head := binary.BigEndian.AppendUint64([]byte{flags}, uint64(t.at))
	head = binary.AppendUvarint(head, e.Place())
	head = binary.AppendUvarint(head, r.Revision)
	sum, err := t.deletes.PutParts(seqKey(e.Seq()), head, []byte(r.Key))
	t.record.Deletes.add(sum)
	return err
}

// finish forgets deletes that the log has forgotten, and writes the record.
func (t *transaction) finish(whole bool) error {
	if err := t.sweep(); err != nil {
		return err
	}
	t.record.Record, t.record.Source = t.state.Record(), t.of.source
	t.record.Whole, t.record.Ended, t.record.Written = whole, whole && !t.ends.IsZero(), time.Now().UTC()
	t.record.Aliases = t.of.Aliases()
	raw, err := json.Marshal(&t.record)
	if err != nil {
		return err
	}
	return t.bucket.Put(recordKey, raw)
}

var errEnough = errors.New("enough")

// sweep removes deletes that do not count any more, once there are many.
func (t *transaction) sweep() error {
	if t.record.Deletes.Count <= 2*uint64(t.state.Tombstones())+SweptFrom {
		return nil
	}
	type gone struct {
		key []byte
		sum uint32
	}
	var all []gone
	err := t.deletes.EachSum(func(key, _ []byte, sum uint32) error {
		if len(key) == 8 && t.state.Counting(binary.BigEndian.Uint64(key)) {
			return nil
		}
		all = append(all, gone{slices.Clone(key), sum})
		if len(all) == mostSwept {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	for _, g := range all {
		if err := t.deletes.Delete(g.key); err != nil {
			return err
		}
		t.record.Deletes.remove(g.sum)
	}
	return nil
}

func seqKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }
