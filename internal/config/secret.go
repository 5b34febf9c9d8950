package config

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// Secret is a credential. It never shows when it is printed or logged.
type Secret string

// Format writes a placeholder, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[hidden]") }

// LogValue returns a placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue("[hidden]") }

// secretLine is the content of a file with a secret.
var secretLine = decode.Text{Want: "one line", Valid: func(s string) bool { return s != "" && !strings.ContainsAny(s, "\r\n\x00") }}

// read reads the file that v names.
func (s *Secret) read(d *decoder, v decode.Value, _ decode.Key) {
	*s = Secret(d.ReadLine(v, secretLine))
}
