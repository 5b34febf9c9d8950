package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// stamp shows whether a file was touched since it was read.
type stamp struct {
	size, modified, changed int64 // times in nanoseconds since 1970
	device, inode           uint64
}

// young means that the file may have been written again after it was read, at
// a time that looks the same: clocks of file systems tick, some only every two
// seconds.
func (s stamp) young(read time.Time) bool {
	const tick = 2 * time.Second
	return read.UnixNano()-s.latest() < int64(tick)
}

// latest is when the file was last touched.
func (s stamp) latest() int64 { return max(s.modified, s.changed) }

// content is the content of a file when it was read.
type content struct {
	stamp stamp
	sure  bool // an equal stamp later means an untouched file
	value []byte
	err   error // why there is no value; without the name of the file
}

// errNotRegular is returned where a pipe, a device or a socket has the name
// of a file.
var errNotRegular = errors.New("this is not a regular file")

// read reads the file at a path below the root. gone reports that there is none.
func read(root *os.Root, name string, limit int64) (c content, gone bool) {
	f, err := root.OpenFile(name, toRead, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return c, true
	}
	if err != nil {
		return content{err: cause(err)}, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return content{err: cause(err)}, false
	}
	// Taken before reading: a later write makes another stamp.
	c.stamp = stampOf(info)
	c.sure = !c.stamp.young(time.Now())
	text, err := textOf(f, info, limit)
	if err == nil {
		c.value, err = decode(formatOf(path.Base(name)), text, limit)
	}
	if size := int64(len(c.value)); err == nil && size > limit {
		c.value, err = nil, fmt.Errorf("as JSON the value has %d bytes; max_value_bytes allows %d", size, limit)
	}
	c.err = err
	return c, false
}

func textOf(f *os.File, info fs.FileInfo, limit int64) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if info.Size() > limit {
		return nil, tooLarge(info.Size(), limit)
	}
	// No larger than needed, since a value often retains all of it.
	text := make([]byte, info.Size()+1)
	n, err := io.ReadFull(f, text)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // as expected
		return text[:n], nil
	case err != nil:
		return nil, cause(err)
	}
	return moreOf(f, text, limit)
}

// moreOf continues reading where a file grew while it was being read.
func moreOf(f *os.File, begun []byte, limit int64) ([]byte, error) {
	more, err := io.ReadAll(io.LimitReader(f, limit+1-int64(len(begun))))
	if err != nil {
		return nil, cause(err)
	}
	if size := int64(len(begun) + len(more)); size > limit {
		return nil, tooLarge(size, limit)
	}
	return append(begun, more...), nil
}

func tooLarge(size, limit int64) error {
	return fmt.Errorf("the file has %d bytes; max_value_bytes allows %d", size, limit)
}

// cause is an error of the operating system without the name of the file, which
// is given elsewhere.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
