package journal

import (
	"path/filepath"

	"github.com/watchtide/watchtide/internal/disk"
)

// Report is what the file of a journal has.
type Report struct {
	FileBytes, FreeBytes int64
	Watches              int
	// Ended is how many of the watches have the end of their logs.
	Ended int
}

// Check reads the file of a folder, and changes nothing. The errors are those of [disk.OpenToRead]. Values
// are read only when they are recalled.
func Check(dir string) (r Report, err error) {
	file, err := disk.OpenToRead(disk.Config{Path: filepath.Join(dir, FileName), Kind: "journal", Format: fileFormat})
	if err != nil {
		return r, err
	}
	defer file.Close()
	r.FileBytes, r.FreeBytes = file.Sizes()
	err = file.View(func(tx *disk.Tx) error {
		all := tx.Bucket(watchesBucket)
		if all == nil {
			return nil
		}
		return all.EachBucket(func(name []byte) error {
			found, err := readRecord(tx, string(name))
			if err == nil && found != nil {
				r.Watches++
				if found.Whole && found.Ended {
					r.Ended++
				}
			}
			return err
		})
	})
	return r, err
}
