package config

import (
	"net/http"
	"slices"
	"strings"

	gatewaysource "github.com/watchtide/watchtide/stream/source/gateway"
)

// nameKind is a kind of names in Metadata.
type nameKind struct {
	canonical func(string) string
	text
	line text // the content of files
}

// nameKinds are the kinds of names that a tag can name.
var nameKinds = map[string]nameKind{
	"metadata": {
		canonical: strings.ToLower,
		text: text{
			want:  `a name of letters, digits, '-', '_' and '.', that neither begins with "grpc-" nor ends with "-bin"`,
			valid: validMetadataName,
		},
		line: text{want: "one line of printable ASCII", valid: validMetadata},
	},
	"header": {
		canonical: http.CanonicalHeaderKey,
		text:      text{want: gatewaysource.WantHeaderName, valid: gatewaysource.ValidHeaderName},
		line:      secretLine,
	},
}

// read reads names, with values that are not secret or with names of files
// that hold the values.
func (m *Metadata) read(d *decoder, v value, k key) {
	entries, _ := d.entries(v)
	for _, e := range entries {
		var content string
		switch {
		case k.name == k.files:
			content = d.readLine(e.value, nameKinds[k.names].line)
		case namesCredential(e.name):
			d.errorf(e.atKey(), "credentials do not belong in the configuration; put the value into a file and name the file in %s", k.files)
			continue
		default:
			d.readText(e.value, texts["printable"], &content)
		}
		m.add(d, e, content, k)
	}
}

func (m *Metadata) add(d *decoder, e entry, content string, k key) {
	kind := nameKinds[k.names]
	name := kind.canonical(e.name)
	if !kind.valid(name) {
		d.errorf(e.atKey(), "want %s", kind.want)
		return
	}
	if _, twice := (*m)[name]; twice {
		d.errorf(e.atKey(), "%q is already in %s or %s", name, k.tag.name, k.files)
		return
	}
	if *m == nil {
		*m = Metadata{}
	}
	(*m)[name] = content
}

// credentialWords are in the names of metadata that carries credentials.
var credentialWords = []string{"authorization", "cookie", "token", "secret", "password", "credential", "api-key", "api_key", "apikey"}

func namesCredential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(name, word) })
}

func validMetadataName(name string) bool {
	ok := name != "" && !strings.HasPrefix(name, "grpc-") && !strings.HasSuffix(name, "-bin")
	for _, r := range name {
		ok = ok && ('a' <= r && r <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.", r))
	}
	return ok
}

func validMetadata(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text != ""
}
