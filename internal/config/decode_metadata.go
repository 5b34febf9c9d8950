package config

import (
	"bytes"
	"slices"
	"strings"
)

// credentialWords are in the names of metadata that carries credentials.
var credentialWords = []string{"authorization", "cookie", "token", "secret", "password", "credential", "api-key", "api_key", "apikey"}

func namesCredential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(name, word) })
}

// metadata reads names and values that are not secret.
func (d *decoder) metadata(into *Metadata) field {
	return func(v value) {
		entries, _ := d.entries(v)
		for _, e := range entries {
			if namesCredential(e.name) {
				d.errorf(value{node: e.key, path: e.path},
					"credentials do not stand in the configuration; put the value into a file and name the file in metadata_files")
				continue
			}
			var text string
			d.strThat("printable ASCII", validMetadata, &text)(e.value)
			d.addMetadata(into, e, text)
		}
	}
}

// metadataFiles reads names, and files that hold the values. A line break at
// the end of a file is not part of the value.
func (d *decoder) metadataFiles(into *Metadata) field {
	return func(v value) {
		entries, _ := d.entries(v)
		for _, e := range entries {
			var file namedFile
			d.fileNamed(&file)(e.value)
			if file.data == nil {
				continue
			}
			text := string(bytes.TrimRight(file.data, "\r\n"))
			if !validMetadata(text) {
				d.errorf(e.value, "the file must hold one line of printable ASCII")
				continue
			}
			d.addMetadata(into, e, text)
		}
	}
}

func (d *decoder) addMetadata(into *Metadata, e entry, text string) {
	name := strings.ToLower(e.name)
	if !validMetadataName(name) {
		d.errorf(value{node: e.key, path: e.path},
			`want a name of letters, digits, '-', '_' and '.', that neither begins with "grpc-" nor ends with "-bin"`)
		return
	}
	if _, twice := (*into)[name]; twice {
		d.errorf(value{node: e.key, path: e.path}, "%q stands in metadata or metadata_files already", name)
		return
	}
	if *into == nil {
		*into = Metadata{}
	}
	(*into)[name] = text
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
