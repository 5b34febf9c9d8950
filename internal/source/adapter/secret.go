package adapter

import (
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strings"
)

// ReadSecret returns the content of a file, without the line break at its end. Read the
// file again for each use: the secret may rotate.
func ReadSecret(file string) (string, error) {
	data, err := os.ReadFile(file)
	return strings.TrimRight(string(data), "\r\n"), err
}

// HideSecret hides secrets in a text that an upstream may have written: a rejection may
// repeat the very token that it rejects. Of "Bearer x" it hides x as well, and also
// where the text has been cut in the middle of x. Anything too short for a secret
// stays, or it would be hidden everywhere.
func HideSecret(text string, secrets iter.Seq[string]) string {
	const shortest, beginning = 6, 8
	for value := range secrets {
		if len(value) >= shortest {
			text = strings.ReplaceAll(text, value, hidden)
		}
		bare := value[strings.LastIndexByte(value, ' ')+1:]
		if len(bare) >= shortest {
			text = hideBeginnings(text, bare, min(beginning, len(bare)))
		}
	}
	return text
}

const hidden = "[hidden]"

// hideBeginnings hides a secret, and its beginnings of at least some length.
func hideBeginnings(text, secret string, least int) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, secret[:least])
		out.WriteString(before)
		if !found {
			return out.String()
		}
		n := 0
		for n < len(after) && least+n < len(secret) && after[n] == secret[least+n] {
			n++
		}
		out.WriteString(hidden)
		text = after[n:]
	}
}

// WantBoth is the problem of a login without one of its parts.
const WantBoth = "want both username and password_file, or neither"

// Secret is a credential. It never shows when it is printed or logged.
type Secret string

// Format writes a placeholder, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[hidden]") }

// LogValue returns a placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue("[hidden]") }

// Metadata is sent with each request: headers, or metadata of gRPC. It may hold credentials, so it
// never shows its values when it is printed or logged.
type Metadata map[string]MetadataValue

// MetadataValue is a value of Metadata.
type MetadataValue struct {
	Text string
	File string // that holds the value when it is sent, in place of Text; empty: none
}

// Read returns the values of now. Those of files must be valid.
func (m Metadata) Read(valid func(string) bool, want string) (map[string]string, error) {
	values := make(map[string]string, len(m))
	for name, v := range m {
		if values[name] = v.Text; v.File == "" {
			continue
		}
		text, err := ReadSecret(v.File)
		if err != nil {
			return nil, fmt.Errorf("file of %s: %w", name, err)
		}
		if !valid(text) {
			return nil, fmt.Errorf("file %s of %s: want %s", v.File, name, want)
		}
		values[name] = text
	}
	return values, nil
}

// Format writes how many entries there are, for every verb.
func (m Metadata) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "[%d hidden]", len(m)) }

// LogValue returns how many entries there are.
func (m Metadata) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(m)) }
