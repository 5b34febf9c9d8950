package config

import (
	"net/http"
	"strings"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/source/adapter"
	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
)

// nameKind is a kind of names in adapter.Metadata.
type nameKind struct {
	canonical func(string) string
	decode.Text
	line decode.Text // the content of files
}

// secretLine is the content of a file with a secret.
var secretLine = decode.Text{Want: "one line", Valid: func(s string) bool { return s != "" && !strings.ContainsAny(s, "\r\n\x00") }}

// nameKinds are the kinds of names that a tag can name.
var nameKinds = map[string]nameKind{
	"metadata": {
		canonical: strings.ToLower,
		Text: decode.Text{
			Want:  `a name of letters, digits, '-', '_' and '.', that neither begins with "grpc-" nor ends with "-bin"`,
			Valid: decode.ValidMetadataName,
		},
		line: decode.Text{Want: "one line of printable ASCII", Valid: decode.ValidMetadata},
	},
	"header": {
		canonical: http.CanonicalHeaderKey,
		Text:      decode.Text{Want: gatewaysource.WantHeaderName, Valid: gatewaysource.ValidHeaderName},
		line:      secretLine,
	},
}

// readMetadata reads names, with values that are not secret or with names of files
// that hold the values.
func (d *decoder) readMetadata(v decode.Value, k decode.Key, m *adapter.Metadata) {
	entries, _ := d.Entries(v)
	for _, e := range entries {
		var value adapter.MetadataValue
		switch {
		case k.Name == k.Files:
			if name, ok := d.TextOf(e.Value, decode.FileName); ok {
				d.Line(name, nameKinds[k.Names].line) // it may have another value later
				value.File = d.Relative(name)
			}
		case decode.NamesCredential(e.Name):
			d.Errorf(e.AtKey(), "credentials do not belong in the configuration; put the value into a file and name the file in %s", k.Files)
			continue
		default:
			d.ReadText(e.Value, texts["printable"], &value.Text)
		}
		d.addMetadata(m, e, value, k)
	}
}

func (d *decoder) addMetadata(m *adapter.Metadata, e decode.Entry, value adapter.MetadataValue, k decode.Key) {
	kind := nameKinds[k.Names]
	name := kind.canonical(e.Name)
	if !kind.Valid(name) {
		d.Errorf(e.AtKey(), "want %s", kind.Want)
		return
	}
	if _, twice := (*m)[name]; twice {
		d.Errorf(e.AtKey(), "%q is already in %s or %s", name, k.Tag.Name, k.Files)
		return
	}
	if *m == nil {
		*m = adapter.Metadata{}
	}
	(*m)[name] = value
}
