package filewatch

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
)

// Contents are files by name, and what they held when they were read.
type Contents map[string]Digest

// Digest stands for the content of a file; the zero value for one that cannot be read.
type Digest [sha256.Size]byte

// ReadFile reads a file and records what it holds. What is not a regular file, such as a
// pipe, can only be read once, and is not recorded.
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

// ReadAgain is ReadFile for a file that has perhaps been read before. It fails for what is
// not a regular file: to read a pipe again would wait for a writer.
func (c Contents) ReadAgain(name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		c[name] = Digest{}
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is no regular file, and can only be read at start")}
	}
	return c.ReadFile(name)
}

// maxBytes is how much of a file is looked at for changes.
const maxBytes = 16 << 20

// now returns what the same files hold now.
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
		return Digest{} // to open a pipe would wait for its writer
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
