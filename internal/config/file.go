package config

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// relative returns the name of a file, which is relative to the configuration.
func (d *decoder) relative(name scalar) string {
	if filepath.IsAbs(name.expanded) {
		return name.expanded
	}
	return filepath.Join(d.dir, name.expanded)
}

// relativeOrHome leaves a name in the home directory as it is.
func (d *decoder) relativeOrHome(name scalar) string {
	if strings.HasPrefix(name.expanded, "~/") {
		return name.expanded
	}
	return d.relative(name)
}

// fileWithContent returns the name of a file that must have content now, and may
// change later.
func (d *decoder) fileWithContent(name scalar) string {
	d.content(name)
	return d.relative(name)
}

// fileOfSecret returns the name of a file that must hold a secret now, and may hold
// another one later.
func (d *decoder) fileOfSecret(name scalar) string {
	d.line(name, secretLine)
	return d.relative(name)
}

// content reads a file. nil: an error was added.
func (d *decoder) content(name scalar) []byte {
	data, err := d.env.ReadFile(d.relative(name))
	switch {
	case err != nil && filepath.IsAbs(name.expanded):
		d.errorf(name.value, "%q cannot be read: %v", name.written, reason(err))
	case err != nil:
		d.errorf(name.value, "%q cannot be read: %v, looked for in %s", name.written, reason(err), d.dir)
	case len(data) == 0:
		d.errorf(name.value, "the file is empty")
	default:
		return data
	}
	return nil
}

// reason is the error without the name of the file, which may come from the
// environment.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// line reads a file with one line of text, without the line break at its end. Empty:
// an error was added.
func (d *decoder) line(name scalar, kind text) string {
	data := d.content(name)
	if data == nil {
		return ""
	}
	line := string(bytes.TrimRight(data, "\r\n"))
	if !kind.valid(line) {
		d.errorf(name.value, "the file must hold %s", kind.want)
		return ""
	}
	return line
}

// readLine reads the line of the file that a value names.
func (d *decoder) readLine(v value, kind text) string {
	if name, ok := d.textOf(v, text{want: wantFile, valid: notEmpty}); ok {
		return d.line(name, kind)
	}
	return ""
}
