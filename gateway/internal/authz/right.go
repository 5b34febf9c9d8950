package authz

import (
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/internal/view"
)

// Right says what a principal may read of a watch. Two rights to the same watch are equal if
// they allow reading the same.
type Right struct {
	Watch string
	reads string // ID of the definition of what may be read; empty: all of it
}

// Right returns the right of the principal of the part, as it was when the part was made.
func (p Part) Right() Right { return p.right }

// RightTo returns what an identity may read of a watch, or false if that is nothing.
func (l *Lookup) RightTo(name string, who *credential.Identity) (Right, bool) {
	if l.config.Policy == nil {
		return Right{Watch: name}, true
	}
	entry, _ := l.config.Watches.Declared(name)
	if !who.May(name) {
		return Right{}, false
	}
	return l.rules(who, entry).right(name)
}

// Knows reports whether it is known what an identity may read of a watch.
func (l *Lookup) Knows(name string, who *credential.Identity) bool {
	entry, _ := l.config.Watches.Declared(name)
	return l.config.Policy == nil || l.rules(who, entry).isKnown()
}

func (r rules) right(name string) (Right, bool) {
	may, ok := r.definition()
	if !ok {
		return Right{}, false
	}
	return rightTo(name, may), true
}

// rightTo returns the right to read what a definition selects; nil: all of the watch.
func rightTo(name string, may *view.Definition) Right {
	if may == nil {
		return Right{Watch: name}
	}
	return Right{Watch: name, reads: may.ID()}
}
