package disk

import (
	"encoding/binary"
	"fmt"
	"testing"

	"go.etcd.io/bbolt"
)

// BenchmarkFreelist compares commits with and without the list of free pages in the file, which has
// 50,000 values of which half were deleted.
func BenchmarkFreelist(b *testing.B) {
	for _, without := range []bool{true, false} {
		b.Run(fmt.Sprintf("in_file=%t", !without), func(b *testing.B) {
			db, err := bbolt.Open(b.TempDir()+"/a.db", 0o600, &bbolt.Options{NoFreelistSync: without, FreelistType: bbolt.FreelistMapType, NoSync: true})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			if err := halfEmpty(db, 50_000); err != nil {
				b.Fatal(err)
			}
			db.NoSync = false
			value := make([]byte, 300)
			before := db.Stats()
			for n := 0; b.Loop(); n++ {
				err := db.Update(func(tx *bbolt.Tx) error {
					return tx.Bucket([]byte("b")).Put(binary.BigEndian.AppendUint64(nil, uint64(50_000+n)), value)
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			stats := db.Stats()
			stats = stats.Sub(&before)
			b.ReportMetric(float64(stats.TxStats.GetPageAlloc())/float64(b.N), "page-bytes/op")
		})
	}
}

// halfEmpty writes values, and deletes the first half of them.
func halfEmpty(db *bbolt.DB, values int) error {
	err := db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucket([]byte("b"))
		for n := 0; n < values && err == nil; n++ {
			err = bucket.Put(binary.BigEndian.AppendUint64(nil, uint64(n)), make([]byte, 300))
		}
		return err
	})
	if err != nil {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte("b"))
		for n := range values / 2 {
			if err := bucket.Delete(binary.BigEndian.AppendUint64(nil, uint64(n))); err != nil {
				return err
			}
		}
		return nil
	})
}
