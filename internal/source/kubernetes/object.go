package kubernetes

import (
	"bytes"
	"strconv"

	"github.com/watchtide/watchtide/stream"
)

// typeMeta is the type of an object that does not contain it: the items of a
// list of built-in resources do not.
type typeMeta struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
}

// parseObject reads the JSON of an object without decoding all of it: the rest
// stays as the server wrote it. The value does not alias raw.
func parseObject(raw []byte, of typeMeta) (stream.Resource, error) {
	r, version, err := parseAnyObject(raw, of)
	if err != nil {
		return r, err
	}
	if r.Revision, err = parseRevision(version); err != nil {
		return stream.Resource{}, err
	}
	return r, nil
}

// parseAnyObject is parseObject for an object that need not have a resourceVersion, which it returns
// as text.
func parseAnyObject(raw []byte, of typeMeta) (r stream.Resource, version string, err error) {
	line, ok := stream.CompactJSON(raw)
	if !ok || len(line) == 0 || line[0] != '{' {
		return r, "", invalid("an object that is not a JSON object: %.40q", raw)
	}
	meta, named := metadata{}, false
	for m := range members(line) {
		switch m.name {
		case "metadata":
			meta = parseMetadata(line[m.value:m.end], m.value)
		case "kind":
			named = true
		}
	}
	if meta.name == "" {
		return r, "", invalid("an object without a name: %.80q", line)
	}
	r = stream.Resource{Key: key(meta), Value: cut(line, meta.from, meta.to, prefix(of, named))}
	return r, meta.revision, nil
}

func key(m metadata) string {
	if m.namespace == "" {
		return m.name
	}
	return m.namespace + "/" + m.name
}

// parseRevision reads a resourceVersion.
func parseRevision(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, invalid("resourceVersion %q: want a number above 0", text)
	}
	return n, nil
}

// metadata is the part of an object's metadata that is read; from and to
// enclose its managedFields, with one of the adjacent commas, in the object.
type metadata struct {
	name, namespace, revision string
	from, to                  int
}

// parseMetadata reads the metadata of an object, which starts there at offset.
func parseMetadata(raw []byte, offset int) metadata {
	var m metadata
	before := 1 // the end of the previous member; after the brace if there is none
	for one := range members(raw) {
		value := raw[one.value:one.end]
		switch one.name {
		case "name":
			m.name = text(value)
		case "namespace":
			m.namespace = text(value)
		case "resourceVersion":
			m.revision = text(value)
		case "managedFields":
			m.from, m.to = offset+before, offset+one.end
			if before == 1 {
				m.from, m.to = offset+one.start, offset+pastComma(raw, one.end)
			}
		}
		before = one.end
	}
	return m
}

// prefix is what must follow the opening brace of an object that lacks its
// type. The server writes it in this order where it does.
func prefix(of typeMeta, named bool) []byte {
	if named || of.Kind == "" {
		return nil
	}
	var b bytes.Buffer
	b.WriteString(`"kind":` + strconv.Quote(of.Kind))
	b.WriteString(`,"apiVersion":` + strconv.Quote(of.APIVersion) + `,`)
	return b.Bytes()
}

// cut copies a JSON object without from…to and with an insertion at its start.
func cut(line []byte, from, to int, more []byte) []byte {
	if from == to {
		from, to = 1, 1
	}
	out := make([]byte, 0, len(line)-(to-from)+len(more))
	out = append(append(out, line[0]), more...)
	out = append(out, line[1:from]...)
	return append(out, line[to:]...)
}
