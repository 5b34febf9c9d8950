package view

import (
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// epochs translates between the revision orders of the watch and those of the view. They
// have the same revisions and other names, which contain the definition: a position of
// one definition must not be resumed under another.
//
// Owned by Watch.
type epochs struct {
	definition *view.Definition // static after construction

	watch string // the newest epoch of the watch
	view  string // what it is called here
}

// enter records the epoch of the watch and returns that of the view, which is the same
// on every replica.
func (e *epochs) enter(watch string) string {
	e.watch, e.view = watch, e.definition.Epoch(watch)
	return e.view
}

// resume returns the position of the watch from which the view continues; false: there
// is none.
func (e *epochs) resume(name string, from stream.Resume) (stream.Position, bool) {
	if from.Epoch == "" || from.Epoch != e.view {
		return stream.Position{}, false
	}
	return stream.Position{Watch: name, Epoch: e.watch, Upserts: from.Revision, AsOf: from.Revision, Unswept: from.Unswept}, true
}
