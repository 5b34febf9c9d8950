package view

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/decimal"
	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/stream"
)

const (
	// MaxGroupFields is the number of fields by which resources are counted.
	MaxGroupFields = 4
	// MaxGroupText is how many bytes of a text tell groups apart.
	MaxGroupText = 256
)

// Grouping says how the resources of a watch are counted: by the values of some fields, and
// of which field the sum, the least and the greatest value are.
//
// A field that is absent is null. Numbers are equal if their values are; one of more than 128 digits,
// or with an exponent beyond a thousand million, is null. Of texts the first MaxGroupText bytes count.
// All objects are equal, and so are all arrays. Of a member that is in its object twice the last one counts.
//
// Static after ParseGrouping; all methods may be called from any goroutine.
type Grouping struct {
	by     []string // paths, in canonical form
	sum    string   // "": of none
	id     string
	finder *document.Finder
}

// ParseGrouping checks the paths of the fields to count by and of the field to add; "": none. Each
// element of by is a path, or several with commas between them. An error is an *Error.
func ParseGrouping(by []string, sum string) (*Grouping, error) {
	g := &Grouping{}
	var paths []document.Path
	for _, text := range by {
		some, err := groupPaths("by", text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, some...)
	}
	for i, at := range paths {
		if g.by = append(g.by, at.Unsigned()); slices.Contains(g.by[:i], g.by[i]) {
			return nil, refuse("by", "", fmt.Errorf("the field %s is named twice", at))
		}
	}
	switch {
	case len(paths) == 0:
		return nil, refuse("by", "", fmt.Errorf("no field is named; want one, or up to %d with commas between them", MaxGroupFields))
	case len(paths) > MaxGroupFields:
		return nil, refuse("by", "", fmt.Errorf("there are %d fields, and at most %d are allowed", len(paths), MaxGroupFields))
	}
	if sum != "" {
		some, err := groupPaths("sum", sum)
		if err != nil {
			return nil, err
		}
		if len(some) > 1 {
			return nil, refuse("sum", "", fmt.Errorf("there are %d fields; want one", len(some)))
		}
		paths, g.sum = append(paths, some[0]), some[0].Unsigned()
	}
	g.finder = document.NewFinder(paths)
	g.id = identify(fmt.Appendf(nil, "grouping 1\n%q\n%q", g.by, g.sum))
	return g, nil
}

// groupPaths reads the paths of a parameter.
func groupPaths(parameter, text string) ([]document.Path, error) {
	if err := limitText(parameter, text); err != nil {
		return nil, err
	}
	paths, err := document.ParseUnsigned(text)
	if err != nil {
		return nil, refuse(parameter, text, err)
	}
	for _, at := range paths {
		if err := limitNames(parameter, at); err != nil {
			return nil, err
		}
	}
	return paths, limitCanonicalPaths(parameter, paths)
}

func limitCanonicalPaths(parameter string, paths []document.Path) error {
	n := 0
	for _, at := range paths {
		n += len(at.String()) + 1
	}
	if n > MaxText+1 {
		return refuse(parameter, "", fmt.Errorf("the paths have %d bytes in full, and at most %d are allowed", n-1, MaxText))
	}
	return nil
}

// ID returns the same 32 lower-case letters and digits for equal groupings only.
func (g *Grouping) ID() string { return g.id }

// Epoch returns the name, in a count, of a revision order of what is counted; see Definition.Epoch.
func (g *Grouping) Epoch(counted string) string {
	sum := sha256.Sum256([]byte("counts " + g.id + " " + counted)) // an ID has a fixed length
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:21]
}

// By returns the paths of the fields to count by.
func (g *Grouping) By() []string { return g.by }

// Sum returns the path of the field to add; "": none.
func (g *Grouping) Sum() string { return g.sum }

// Counter reads the fields of one resource after the other.
//
// Owned by one goroutine.
type Counter struct {
	of    *Grouping
	found [][]byte
	key   []byte
	parts [MaxGroupFields]part
	n     int
}

// part is the value of one field, as canonical JSON.
type part struct {
	json string
	text string // if it is a text
	is   bool   // it is one
}

// Counter returns a counter.
func (g *Grouping) Counter() *Counter {
	n := len(g.by)
	c := &Counter{of: g, found: make([][]byte, n), n: n}
	if g.sum != "" {
		c.found = make([][]byte, n+1)
	}
	return c
}

// Read reads a resource. What the other methods return is of the last one that was read.
func (c *Counter) Read(r stream.Resource) {
	if r.Encoding != "" {
		clear(c.found)
	} else {
		c.of.finder.Find(r.Value, c.found)
	}
	for i := range c.n {
		c.parts[i] = partOf(c.found[i])
	}
}

// Key returns the key of the resource's group: for one field a text as it is, unless that is JSON,
// and anything else as JSON; for several fields an array of JSON. It is valid until the next call.
func (c *Counter) Key() []byte {
	c.key = c.key[:0]
	if c.n == 1 {
		if p := &c.parts[0]; p.is && p.text != "" && !json.Valid([]byte(p.text)) {
			return append(c.key, p.text...)
		}
		return append(c.key, c.parts[0].json...)
	}
	c.key = append(c.key, '[')
	for i := range c.n {
		if i > 0 {
			c.key = append(c.key, ',')
		}
		c.key = append(c.key, c.parts[i].json...)
	}
	c.key = append(c.key, ']')
	return c.key
}

// Part returns the value of a field, as JSON.
func (c *Counter) Part(i int) string { return c.parts[i].json }

// Number returns the value of the field to add, if it is a number that can be added.
func (c *Counter) Number() (decimal.Number, bool) {
	if c.of.sum == "" || c.found[c.n] == nil {
		return decimal.Number{}, false
	}
	return decimal.Parse(c.found[c.n])
}

// partOf returns the value that a JSON text stands for among groups.
func partOf(raw []byte) part {
	if len(raw) == 0 {
		return part{json: "null"}
	}
	switch raw[0] {
	case '{':
		return part{json: "{}"}
	case '[':
		return part{json: "[]"}
	case '"':
		text, ok := document.Text(raw)
		if !ok {
			return part{json: "null"}
		}
		text = cut(strings.ToValidUTF8(text, "\uFFFD"))
		return part{json: quote(text), text: text, is: true}
	}
	if word := string(raw); word == "true" || word == "false" {
		return part{json: word}
	}
	if n, ok := decimal.Parse(raw); ok {
		return part{json: n.String()}
	}
	return part{json: "null"}
}

// cut returns the first MaxGroupText bytes of a text, without half a character.
func cut(text string) string {
	if len(text) <= MaxGroupText {
		return text
	}
	n := MaxGroupText
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// quote returns a text as JSON.
func quote(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can always be encoded
	return strings.TrimSuffix(out.String(), "\n")
}
