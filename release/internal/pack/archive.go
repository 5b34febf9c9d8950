// Package pack makes the files of a release: archives whose bytes depend on nothing but the names,
// modes and content of their files, and on one time; packages for Linux distributions and for npm; a
// container image, without a container engine and without a base image; the Helm chart; and the list of
// what a program is made from.
//
// The packages for distributions install the program, the unit of systemd, which they neither enable
// nor start, and an empty folder for the configuration.
package pack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"time"
)

// File is a file of an archive.
type File struct {
	Name string // with slashes
	Mode int64  // permissions
	Data []byte
}

// Folder returns the files below a folder in the order of their names, readable by everybody.
func Folder(folder string) ([]File, error) {
	var files []File
	tree := os.DirFS(folder)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		files = append(files, File{Name: name, Mode: 0o644, Data: data})
		return err
	})
	return files, err
}

// Tar returns a tar archive of these files, in this order.
func Tar(files []File, modified time.Time) ([]byte, error) {
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
	raw, err := Tar(files, modified)
	if err != nil {
		return nil, err
	}
	return Gzip(raw)
}

// Gzip returns compressed bytes, and records neither a name nor a time.
func Gzip(raw []byte) ([]byte, error) {
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

// Zip returns a zip archive of these files, in this order.
func Zip(files []File, modified time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: modified.UTC()}
		header.SetMode(fs.FileMode(f.Mode))
		file, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(f.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
