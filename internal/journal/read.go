package journal

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// found is a value of the file, which aliases it.
type found struct {
	seq        uint64
	key, value []byte // of a delete, key is the seq
}

// entries are those of a watch, by rising seq.
type entries []found

// readEntries returns the entries of a watch, which are valid during the transaction.
func readEntries(tx *disk.Tx, name string, r *record) (entries, error) {
	bucket := tx.Bucket(watchesBucket).Bucket([]byte(name))
	want, err := digest.Parse(r.Digest)
	if err != nil {
		return nil, bucket.Damaged(recordKey, err.Error())
	}
	all := make(entries, 0, min(want.Count+r.Deletes.Count, 1<<24))
	if b := bucket.Bucket(entriesBucket); b != nil {
		err = b.Each(func(key, value []byte) error {
			if _, n := placeOf(value); n == 0 {
				return b.Damaged(key, "it is no resource")
			}
			all = append(all, found{binary.BigEndian.Uint64(value[1:]), key, value})
			return nil
		})
	}
	if b := bucket.Bucket(deletesBucket); err == nil && b != nil {
		err = all.addDeletes(b, r)
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.seq, b.seq) })
	return all, err
}

func (all *entries) addDeletes(b *disk.Bucket, r *record) error {
	got := tally{}
	err := b.EachSum(func(key, value []byte, sum uint32) error {
		_, n := placeOf(value)
		if n == 0 || len(key) != 8 {
			return b.Damaged(key, "it is no delete")
		}
		if _, m := binary.Uvarint(value[n:]); m <= 0 || len(value) == n+m {
			return b.Damaged(key, "it is no delete")
		}
		got.add(sum)
		*all = append(*all, found{binary.BigEndian.Uint64(key), nil, value})
		return nil
	})
	if err == nil && got != r.Deletes {
		err = b.Damaged(deletesBucket, fmt.Sprintf("it has %d deletes, want %d", got.Count, r.Deletes.Count))
	}
	return err
}

// placeOf returns the place in a value, and where it ends; 0: there is none.
func placeOf(value []byte) (place uint64, end int) {
	const before = 1 + 8 // flags, and a number
	if len(value) <= before {
		return 0, 0
	}
	place, n := binary.Uvarint(value[before:])
	if n <= 0 {
		return 0, 0
	}
	return place, before + n
}

// recorded returns the entries as a log has them.
func (all entries) recorded() log.RecordedEntries {
	of := log.RecordedEntries{Count: len(all)}
	for _, f := range all {
		of.Bytes += int64(len(f.key) + len(f.value))
	}
	of.All = func(yield func(log.Recorded) bool) {
		for _, f := range all {
			if !yield(f.recorded()) {
				return
			}
		}
	}
	return of
}

func (f found) recorded() log.Recorded {
	place, n := placeOf(f.value)
	r := log.Recorded{Seq: f.seq, Place: place}
	if f.key != nil {
		r.Resource = stream.Resource{Key: string(f.key), Revision: place, Value: f.value[n:len(f.value):len(f.value)]}
		if f.value[0]&isBase64 != 0 {
			r.Resource.Encoding = stream.Base64
		}
		return r
	}
	shown, m := binary.Uvarint(f.value[n:])
	r.Resource = stream.Resource{Key: string(f.value[n+m:]), Revision: shown}
	r.Deleted, r.Unnumbered = true, f.value[0]&isUnnumbered != 0
	r.At = time.UnixMilli(int64(binary.BigEndian.Uint64(f.value[1:])))
	return r
}
