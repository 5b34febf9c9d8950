package decode

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Relative returns the name of a file, which is relative to the document.
func (d *Decoder) Relative(name Scalar) string {
	if filepath.IsAbs(name.Expanded) {
		return name.Expanded
	}
	return filepath.Join(d.dir(), name.Expanded)
}

// FileName is the kind of text that names a file.
var FileName = Text{Want: "the name of a file", Valid: func(s string) bool { return s != "" }}

// dir is where relative names of files start.
func (d *Decoder) dir() string { return filepath.Dir(d.File) }

// Content reads a file. nil: an error was added.
func (d *Decoder) Content(name Scalar) []byte {
	data, err := d.Env.ReadFile(d.Relative(name))
	switch {
	case err != nil && filepath.IsAbs(name.Expanded):
		d.Errorf(name.Value, "%q cannot be read: %v", name.Written, reason(err))
	case err != nil:
		d.Errorf(name.Value, "%q cannot be read: %v, looked for in %s", name.Written, reason(err), d.dir())
	case len(data) == 0:
		d.Errorf(name.Value, "the file is empty")
	default:
		return data
	}
	return nil
}

// readFile reads the file that a value names.
func (d *Decoder) readFile(v Value, into fileReader) {
	name, ok := d.TextOf(v, FileName)
	if !ok {
		return
	}
	data := d.Content(name)
	if data == nil {
		return
	}
	var mode fs.FileMode
	if info, err := d.Env.Stat(d.Relative(name)); err == nil {
		mode = info.Mode()
	}
	if err := into.ReadFile(name.Written, data, mode); err != nil {
		d.Errorf(name.Value, "%v", err)
	}
}

// reason returns the error without the name of the file, which may come from the environment.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Line reads a file with one line of text, without the line break at its end. Empty:
// an error was added.
func (d *Decoder) Line(name Scalar, kind Text) string {
	data := d.Content(name)
	if data == nil {
		return ""
	}
	line := string(bytes.TrimRight(data, "\r\n"))
	if !kind.Valid(line) {
		d.Errorf(name.Value, "the file must hold %s", kind.Want)
		return ""
	}
	return line
}

// ReadLine reads the line of the file that a value names.
func (d *Decoder) ReadLine(v Value, kind Text) string {
	if name, ok := d.TextOf(v, FileName); ok {
		line := d.Line(name, kind)
		d.Use([]byte(line))
		return line
	}
	return ""
}

// Use records that the content of a file is a part of the section that is being read; see
// Contents.
func (d *Decoder) Use(content []byte) {
	d.Contents = fmt.Sprintf("%x", sha256.Sum256(append([]byte(d.Contents), content...)))
}
