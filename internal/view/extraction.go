package view

import (
	"slices"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/internal/view/internal/predicate"
	"github.com/watchtide/watchtide/stream"
)

// extraction is what some definitions need of one resource, read once for all of them
// and not before one needs it.
//
// Owned by one goroutine.
type extraction struct {
	paths    *document.Paths // of all definitions
	resource *stream.Resource
	input    predicate.Input
	spent    int // in units of about 100 ns
	asked    int // as much of it as the filter, and not a grant, has cost

	done     bool
	isJSON   bool
	document document.Document

	labels   map[string]string
	labelsAt document.Path // where labels were read; nil: not yet
}

// begin begins with a resource, or with none, and other paths.
func (e *extraction) begin(paths *document.Paths, r *stream.Resource) {
	e.paths, e.resource = paths, r
	if r != nil {
		e.set(r)
	}
}

// set begins with another resource.
func (e *extraction) set(r *stream.Resource) {
	e.resource, e.done, e.isJSON, e.labels, e.labelsAt = r, false, false, nil, nil
	e.input.Set(r.Key, r.Revision)
}

// read reads the value, once.
func (e *extraction) read() {
	if e.done {
		return
	}
	e.done = true
	e.spent += len(e.resource.Value) / readBytes
	if e.resource.Encoding != "" || e.document.Read(e.resource.Value, e.paths) != nil {
		e.document.Reset()
		return
	}
	e.isJSON = true
	e.input.SetValue(e.document.Root)
}

// readBytes is how many bytes of a value can be read in the time of a unit.
const readBytes = 20

// holds evaluates a filter.
func (e *extraction) holds(p *predicate.Predicate) (bool, error) {
	holds, err := p.Holds(&e.input)
	e.spent += e.input.Spent()
	return holds, err
}

// readLabels finds the labels: the strings among the members of an object.
func (e *extraction) readLabels(at document.Path) {
	if e.labelsAt != nil && slices.Equal(e.labelsAt, at) {
		return
	}
	e.labelsAt, e.labels = at, nil
	if e.isJSON {
		object, _ := e.document.At(at).(map[string]any)
		e.labels = make(map[string]string, len(object))
		for name, v := range object {
			if text, ok := v.(string); ok {
				e.labels[name] = text
			}
		}
	}
	e.input.SetLabels(e.labels)
}
