package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
)

// Verify reads every page that a database uses, without mapping it, and returns an error that says
// which page is damaged. The database itself ends the process, or reads beyond its pages, where a page
// is not what it must be. Values have checksums of their own; see Bucket.
//
// It returns how many bytes are used, and how many the file has.
func Verify(path string) (used, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	v := &verifier{file: f, path: path, seen: map[uint64]bool{}}
	m, err := v.meta()
	if err != nil {
		return 0, 0, err
	}
	v.pages = m.pages
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	if want := int64(m.pages) * v.pageSize; info.Size() < want {
		return 0, 0, v.damaged("it has %d bytes, want %d: its end is missing", info.Size(), want)
	}
	err = v.tree(m.root, nil, nil, 0)
	return int64(len(v.seen)+2) * v.pageSize, info.Size(), err
}

// The layout of a database of bbolt, which is fixed: numbers are in the order of the machine's bytes.
const (
	magic       = 0xED0CDAED
	layout      = 2
	pageHeader  = 16
	elementSize = 16
	branchPage  = 1
	leafPage    = 2
	bucketValue = 1  // flag of an element of a leaf
	bucketBytes = 16 // root and sequence
	maxDepth    = 64
)

// verifier reads one file. Owned by Verify.
type verifier struct {
	file     *os.File
	path     string
	pageSize int64
	pages    uint64
	seen     map[uint64]bool // pages that are used
}

type meta struct{ root, pages, tx uint64 }

func (v *verifier) damaged(format string, args ...any) error {
	return &DamagedError{Path: v.path, What: fmt.Sprintf(format, args...)}
}

// meta returns the newest of the two descriptions of the database that is whole: a loss of power may
// have torn the one that was being written.
func (v *verifier) meta() (newest meta, err error) {
	found := false
	for _, at := range []int64{0, 1024, 2048, 4096, 8192, 16384, 32768, 65536} {
		m, size, ok := v.readMeta(at)
		if !ok || at != 0 && at != size {
			continue
		}
		if !found || m.tx > newest.tx {
			newest, found, v.pageSize = m, true, size
		}
	}
	if !found {
		return newest, v.damaged("neither page 0 nor page 1 describes a database")
	}
	return newest, nil
}

func (v *verifier) readMeta(at int64) (m meta, pageSize int64, ok bool) {
	const size, sum = 64, 56
	raw := make([]byte, pageHeader+size)
	if _, err := v.file.ReadAt(raw, at); err != nil {
		return m, 0, false
	}
	raw = raw[pageHeader:]
	order := binary.NativeEndian
	h := fnv.New64a()
	h.Write(raw[:sum])
	if order.Uint32(raw) != magic || order.Uint32(raw[4:]) != layout || order.Uint64(raw[sum:]) != h.Sum64() {
		return m, 0, false
	}
	pageSize = int64(order.Uint32(raw[8:]))
	m = meta{root: order.Uint64(raw[16:]), pages: order.Uint64(raw[40:]), tx: order.Uint64(raw[48:])}
	return m, pageSize, pageSize >= 512 && pageSize <= 1<<20
}

// tree checks the pages of a bucket from one on. Keys must not be below least, and be below most.
func (v *verifier) tree(id uint64, least, most []byte, depth int) error {
	if depth > maxDepth {
		return v.damaged("page %d: more than %d pages lead to it", id, maxDepth)
	}
	page, err := v.page(id)
	if err != nil {
		return err
	}
	return v.elements(page, fmt.Sprintf("page %d", id), least, most, depth)
}

// page reads a page, with those that it continues in.
func (v *verifier) page(id uint64) ([]byte, error) {
	if id < 2 || id >= v.pages {
		return nil, v.damaged("page %d is referred to: want 2 to %d", id, v.pages-1)
	}
	head := make([]byte, pageHeader)
	if _, err := v.file.ReadAt(head, int64(id)*v.pageSize); err != nil {
		return nil, v.damaged("page %d: %v", id, err)
	}
	got, more := binary.NativeEndian.Uint64(head), uint64(binary.NativeEndian.Uint32(head[12:]))
	if got != id || more >= v.pages-id {
		return nil, v.damaged("page %d says that it is page %d, and has %d more", id, got, more)
	}
	for n := id; n <= id+more; n++ {
		if v.seen[n] {
			return nil, v.damaged("page %d is used twice", n)
		}
		v.seen[n] = true
	}
	page := make([]byte, int64(more+1)*v.pageSize)
	if _, err := v.file.ReadAt(page, int64(id)*v.pageSize); err != nil {
		return nil, v.damaged("page %d: %v", id, err)
	}
	return page, nil
}

// elements checks what is on a page, or in a bucket that is a value.
func (v *verifier) elements(page []byte, where string, least, most []byte, depth int) error {
	if len(page) < pageHeader {
		return v.damaged("%s: its head is missing", where)
	}
	order := binary.NativeEndian
	flags, count := order.Uint16(page[8:]), int(order.Uint16(page[10:]))
	if flags != branchPage && flags != leafPage {
		return v.damaged("%s is of type %x: want %d or %d", where, flags, branchPage, leafPage)
	}
	if flags == branchPage && count == 0 || pageHeader+count*elementSize > len(page) {
		return v.damaged("%s has %d elements", where, count)
	}
	key := func(i int) ([]byte, []byte, error) { return v.element(page, i, flags, where) }
	last := least
	for i := range count {
		k, value, err := key(i)
		switch {
		case err != nil:
			return err
		case last != nil && bytes.Compare(k, last) < 0, last != nil && i > 0 && bytes.Equal(k, last), most != nil && bytes.Compare(k, most) >= 0:
			return v.damaged("%s: key %d is not in order", where, i)
		}
		last = k
		at := page[pageHeader+i*elementSize:]
		switch {
		case flags == branchPage:
			end := most
			if i+1 < count {
				if end, _, err = key(i + 1); err != nil {
					return err
				}
			}
			err = v.tree(order.Uint64(at[8:]), k, end, depth+1)
		case order.Uint32(at)&bucketValue != 0:
			err = v.bucket(value, fmt.Sprintf("%s, bucket %.80q", where, k), depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// element returns the key of an element, and its value on a leaf.
func (v *verifier) element(page []byte, i int, flags uint16, where string) (key, value []byte, err error) {
	order := binary.NativeEndian
	start := pageHeader + i*elementSize
	at := page[start:]
	pos, ksize, vsize := uint64(order.Uint32(at)), uint64(order.Uint32(at[4:])), uint64(0)
	if flags == leafPage {
		pos, ksize, vsize = uint64(order.Uint32(at[4:])), uint64(order.Uint32(at[8:])), uint64(order.Uint32(at[12:]))
	}
	from := uint64(start) + pos
	if from < uint64(start) || ksize == 0 || from+ksize+vsize > uint64(len(page)) {
		return nil, nil, v.damaged("%s: element %d is outside the page", where, i)
	}
	return page[from : from+ksize], page[from+ksize : from+ksize+vsize], nil
}

// bucket checks a bucket whose value is given: it has pages, or is in the value.
func (v *verifier) bucket(value []byte, where string, depth int) error {
	if len(value) < bucketBytes {
		return v.damaged("%s: its head is missing", where)
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return v.tree(root, nil, nil, depth+1)
	}
	if depth > maxDepth {
		return v.damaged("%s: more than %d buckets lead to it", where, maxDepth)
	}
	return v.elements(value[bucketBytes:], where, nil, nil, depth+1)
}
