package config

import (
	"strings"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"k8s.io/apimachinery/pkg/fields"
)

// What parameters may put into names that have no escapes.
var (
	// consulName: "*" means all of them.
	consulName     = decode.OnlyOf(decode.LowerCase + decode.Digits + "-")
	consulService  = decode.OnlyOf(decode.LowerCase + decode.UpperCase + decode.Digits + "-_.")
	consulTypePart = decode.OnlyOf(decode.LowerCase + decode.UpperCase + decode.Digits + "_")

	// natsName and natsToken: a parameter is a part of one token, since '.', '*' and '>' cannot be
	// escaped there.
	natsName  = decode.OnlyOf(decode.LowerCase + decode.UpperCase + decode.Digits + "-_")
	natsToken = decode.OnlyOf(decode.LowerCase + decode.UpperCase + decode.Digits + "-_/=")

	// postgresName: a parameter is a part of a name without quotation marks.
	postgresName = decode.OnlyOf(decode.LowerCase + decode.Digits + "_")

	// kubernetesName: the names are parts of a path.
	kubernetesName = decode.OnlyOf(decode.LowerCase + decode.Digits + "-.")
)

// fieldValue escapes what a field selector would read as its own.
func fieldValue(value string) (string, bool) {
	return fields.EscapeValue(value), utf8.ValidString(value) && !strings.ContainsRune(value, 0)
}
