package config

import (
	"path/filepath"
	"strings"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// relativeOrHome is like relative, but leaves a name in the home directory as it is.
func relativeOrHome(d *decode.Decoder, name decode.Scalar) string {
	if strings.HasPrefix(name.Expanded, "~/") {
		return name.Expanded
	}
	return d.Relative(name)
}

// fileWithContent returns the name of a file that must not be empty now. It may change later.
func fileWithContent(d *decode.Decoder, name decode.Scalar) string {
	d.Content(name)
	return d.Relative(name)
}

// fileOfSecret returns the name of a file that must have a secret now. It may have another one
// later.
func fileOfSecret(d *decode.Decoder, name decode.Scalar) string {
	d.Line(name, secretLine)
	return d.Relative(name)
}

// auditFile returns the name of a file that exists or can be created, or the word for standard
// error.
func auditFile(d *decode.Decoder, name decode.Scalar) string {
	if name.Expanded == Stderr {
		return name.Expanded
	}
	file := d.Relative(name)
	if info, err := d.Env.Stat(file); err == nil {
		if info.IsDir() {
			d.Errorf(name.Value, "%q is a directory; want the name of a file, or stderr", name.Written)
		}
		return file
	}
	if info, err := d.Env.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		d.Errorf(name.Value, "%q: there is no such directory; want a file in one that exists, or stderr", name.Written)
	}
	return file
}
