package access

import "github.com/watchtide/watchtide/access/credential"

// Right is what somebody may read of a watch, for comparison. Two rights to the same watch
// are equal if the same may be read.
type Right struct {
	Watch string
	reads string // ID of the definition of what may be read; empty: all of it
}

// Right returns the right with which a request has its part.
func (p Part) Right() Right {
	right, _ := p.rules.right(p.Name())
	return right
}

// RightTo returns what somebody may read of a watch. It returns false if that is nothing.
func (l *Lookup) RightTo(name string, who *credential.Identity) (Right, bool) {
	if l.config.Policy == nil {
		return Right{Watch: name}, true
	}
	entry, _ := l.config.Watches.Declared(name)
	if !who.May(name) {
		return Right{}, false
	}
	return rules{l.config.Policy, who, entry}.right(name)
}

func (r rules) right(name string) (Right, bool) {
	may, ok := r.definition()
	if !ok {
		return Right{}, false
	}
	right := Right{Watch: name}
	if may != nil {
		right.reads = may.ID()
	}
	return right, true
}
