package authz

import "github.com/watchtide/watchtide/access/credential"

// Right says what a principal may read of a watch. Two rights to the same watch are equal if
// they allow reading the same.
type Right struct {
	Watch string
	reads string // ID of the definition of what may be read; empty: all of it
}

// Right returns the right of the principal of the part.
func (p Part) Right() Right {
	right, _ := p.rules.right(p.Name())
	return right
}

// RightTo returns what an identity may read of a watch, or false if that is nothing.
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
