// Package archive writes archives whose bytes depend on nothing but the names, modes and content
// of their files, and on one time.
package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"time"
)

// File is a file of an archive.
type File struct {
	Name string // with slashes
	Mode int64  // permissions
	Data []byte
}

func pack(files []File, modified time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: f.Mode, Size: int64(len(f.Data)), ModTime: modified, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// TarGzip returns a compressed tar archive of these files, in this order.
func TarGzip(files []File, modified time.Time) ([]byte, error) {
	raw, err := pack(files, modified)
	if err != nil {
		return nil, err
	}
	return compress(raw)
}

// compress records neither a name nor a time.
func compress(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
