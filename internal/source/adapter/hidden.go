package adapter

import (
	"fmt"
	"log/slog"
)

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
type Metadata map[string]string

// Format writes how many entries there are, for every verb.
func (m Metadata) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "[%d hidden]", len(m)) }

// LogValue returns how many entries there are.
func (m Metadata) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(m)) }
