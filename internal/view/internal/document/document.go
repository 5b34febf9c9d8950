package document

// Document is what was read of one value.
//
// Owned by one goroutine.
type Document struct {
	// Root is the value until another one is read, as nil, bool, int64, uint64, float64, string, []any and
	// map[string]any, without what no path leads to: members beside the paths, and the
	// elements of arrays on the way.
	Root any
	// Visits are the scalars at watched paths.
	Visits []Visit

	paths   *Paths
	repeats map[*Node]repeat
	members map[string]any // of a Root that is an object; used again
}

// mostMembers is how many members a map may have had that is used again.
const mostMembers = 64

// Visit is a scalar that was found at a watched path.
type Visit struct {
	At     *Node
	Scalar Scalar
}

// repeat says what was found twice at a node.
type repeat struct {
	itself bool // the member itself is in its object twice
	inside bool // some object in the value has a member twice
}

// Read reads what paths lead to in a value, which is JSON text. What no path leads to is
// not checked.
func (d *Document) Read(value []byte, paths *Paths) error {
	d.Reset()
	d.paths = paths
	r := reader{scanner: scanner{text: value}, document: d}
	if paths.root.ends > 0 {
		r.copied = string(value)
	}
	root, _, err := r.value(&paths.root, false, 0)
	if err == nil && r.peek() != 0 {
		err = errMalformed
	}
	d.Root = root
	return err
}

// Reset forgets what was read.
func (d *Document) Reset() {
	clear(d.Visits)
	if len(d.members) > mostMembers {
		d.members = nil
	}
	clear(d.members)
	d.Root, d.Visits, d.paths, d.repeats = nil, d.Visits[:0], nil, nil
}

// HasRepeats reports whether Repeats can be true of any path.
func (d *Document) HasRepeats() bool { return d.repeats != nil }

// Repeats reports whether a member that is in its object twice lies on the path, the end
// included, or anywhere within the value at its end. The path is one of those that were
// read.
func (d *Document) Repeats(at Path) bool {
	if d.repeats == nil {
		return false
	}
	n := &d.paths.root
	for _, name := range at {
		if n = n.get(name); n == nil {
			return false
		}
		if d.repeats[n].itself {
			return true
		}
	}
	return d.repeats[n].inside
}

// At returns what is at a path that was read.
func (d *Document) At(at Path) any {
	v := d.Root
	for _, name := range at {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// reader reads one document.
type reader struct {
	scanner
	document *Document
}

// Stand for objects and arrays of which nothing was asked. Nobody writes them.
var (
	emptyObject = map[string]any{}
	emptyArray  = []any{}
)

// value reads a value. The node is where paths lead from here, or nil; whole says that a
// path ended above. It also returns whether a member was in its object twice.
func (r *reader) value(n *Node, whole bool, depth int) (v any, repeats bool, err error) {
	if depth > maxDepth {
		return nil, false, errMalformed
	}
	ends := n != nil && n.ends > 0
	switch r.peek() {
	case '{':
		v, repeats, err = r.object(n, whole || ends, depth)
	case '[':
		v, repeats, err = r.array(whole || ends, depth)
	default:
		v, err = r.scalar()
	}
	if err != nil {
		return nil, false, err
	}
	if ends && repeats {
		r.note(n, repeat{inside: true})
	}
	if n != nil && n.watched > 0 {
		if scalar, ok := ScalarOf(v); ok {
			r.document.Visits = append(r.document.Visits, Visit{At: n, Scalar: scalar})
		}
	}
	return v, repeats, nil
}

// object reads an object: all of it if whole, else the members to which paths lead.
func (r *reader) object(n *Node, whole bool, depth int) (_ any, repeats bool, err error) {
	object := emptyObject
	r.at++
	for first := true; ; first = false {
		if more, err := r.more(first, '}'); !more {
			return object, repeats, err
		}
		raw, err := r.name()
		if err != nil {
			return nil, false, err
		}
		child, err := n.child(raw)
		if err != nil {
			return nil, false, err
		}
		if child == nil && !whole {
			if _, err := r.skip(); err != nil {
				return nil, false, err
			}
			continue
		}
		name, err := r.unquote(raw)
		if err != nil {
			return nil, false, err
		}
		v, inside, err := r.value(child, whole, depth+1)
		if err != nil {
			return nil, false, err
		}
		_, twice := object[name]
		if twice && child != nil {
			r.note(child, repeat{itself: true})
		}
		repeats = repeats || inside || twice
		if len(object) == 0 {
			object = r.newObject(depth)
		}
		object[name] = v
	}
}

// newObject returns an empty object. There is one at depth 0 at most.
func (r *reader) newObject(depth int) map[string]any {
	d := r.document
	if depth > 0 {
		return map[string]any{}
	}
	if d.members == nil {
		d.members = map[string]any{}
	}
	return d.members
}

// array reads an array, or skips it if nothing in it is wanted.
func (r *reader) array(whole bool, depth int) (_ any, repeats bool, err error) {
	if !whole {
		_, err := r.skip()
		return emptyArray, false, err
	}
	array := emptyArray
	r.at++
	for first := true; ; first = false {
		if more, err := r.more(first, ']'); !more {
			return array, repeats, err
		}
		v, inside, err := r.value(nil, true, depth+1)
		if err != nil {
			return nil, false, err
		}
		repeats = repeats || inside
		array = append(array, v)
	}
}

// note remembers that something was found twice.
func (r *reader) note(n *Node, what repeat) {
	if r.document.repeats == nil {
		r.document.repeats = map[*Node]repeat{}
	}
	was := r.document.repeats[n]
	r.document.repeats[n] = repeat{itself: was.itself || what.itself, inside: was.inside || what.inside}
}
