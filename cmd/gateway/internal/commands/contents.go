package commands

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
)

// Contents has the names of files, and digests of their content when they were read.
type Contents map[string]Digest

// Digest is a hash of the content of a file. The zero value is that of a file that cannot be
// read.
type Digest [sha256.Size]byte

// ReadFile reads a file and records its digest. It does not record anything but regular files:
// a pipe, for instance, can be read only once.
func (c Contents) ReadFile(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		c[name] = Digest{}
		return nil, err
	}
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		c[name] = sha256.Sum256(data[:min(len(data), maxBytes)])
	}
	return data, nil
}

// ReadAgain is like ReadFile, for a file that may have been read before. It fails if it is not
// a regular file: reading a pipe again would block until there is a writer.
func (c Contents) ReadAgain(name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		c[name] = Digest{}
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is no regular file, and can only be read at start")}
	}
	return c.ReadFile(name)
}

// maxBytes is the size up to which a file is checked for changes.
const maxBytes = 16 << 20

// now returns the current digests of the same files.
func (c Contents) now() Contents {
	found := make(Contents, len(c))
	for name := range c {
		found[name] = digest(name)
	}
	return found
}

func digest(name string) (d Digest) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return Digest{} // opening a pipe would block until there is a writer
	}
	f, err := os.Open(name)
	if err != nil {
		return Digest{}
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxBytes)); err != nil && !errors.Is(err, io.EOF) {
		return Digest{}
	}
	h.Sum(d[:0])
	return d
}

func (c Contents) equal(o Contents) bool { return maps.Equal(c, o) }
