package config

import (
	"bytes"
	"fmt"
	"log/slog"
)

// Secret is a credential. It never shows when it is printed or logged.
type Secret string

// Format writes a placeholder, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[hidden]") }

// LogValue returns a placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue("[hidden]") }

// secretFile reads a secret from the file that a value names. A line break at the
// end of the file is not part of it.
func (d *decoder) secretFile(into *Secret) field {
	return func(v value) {
		var file namedFile
		d.fileNamed(&file)(v)
		if file.data == nil {
			return
		}
		text := bytes.TrimRight(file.data, "\r\n")
		if len(text) == 0 || bytes.ContainsAny(text, "\r\n\x00") {
			d.errorf(v, "the file must hold one line")
			return
		}
		*into = Secret(text)
	}
}
