package disk

import (
	"fmt"
	"testing"
)

// TestPagesAreFilled: values that are added in the order of their keys take at most 1.6 times
// their bytes.
func TestPagesAreFilled(t *testing.T) {
	f := mustOpen(t, newPath(t))
	const n, size = 5000, 300
	for at := 0; at < n; at += 50 {
		err := f.Update(func(tx *Tx) error {
			b, err := tx.MakeBucket(things)
			if err != nil {
				return err
			}
			b.Inserted()
			for i := range 50 {
				if err := b.Put(fmt.Appendf(nil, "key-%07d", at+i), make([]byte, size)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = f.Close()
	used, _, err := Verify(f.Path())
	if err != nil || used > n*size*8/5 {
		t.Errorf("%d bytes of values take %d, error %v", n*size, used, err)
	}
}
