package files

import (
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// yamlWriter writes YAML as JSON in one pass. The value of an anchor is copied
// from the output so far, so the cost of an alias is its output and no alias
// can contain itself. Owned by fromYAML.
type yamlWriter struct {
	out     []byte
	limit   int64 // of out
	depth   int
	anchors map[string]anchored
}

// anchored is the value of an anchor, as offsets in out.
type anchored struct {
	open     bool // still being written
	from, to int
	pairs    []pair // of a mapping
	mapping  bool
}

// pair is one entry of a mapping, as an offset in out.
type pair struct {
	key      string
	from, to int // of its value
}

const maxDepth = 2000

// value writes any node.
func (w *yamlWriter) value(n ast.Node) error {
	if int64(len(w.out)) > w.limit {
		return wrong(n, "up to here the value has more than the %d bytes of max_value_bytes, with its aliases filled in", w.limit)
	}
	if w.depth++; w.depth > maxDepth {
		return wrong(n, "more than %d values within one another", maxDepth)
	}
	defer func() { w.depth-- }()
	switch n := n.(type) {
	case *ast.MappingNode:
		_, err := w.mapping(n)
		return err
	case *ast.MappingValueNode:
		_, err := w.mapping(&ast.MappingNode{BaseNode: &ast.BaseNode{}, Start: n.Start, Values: []*ast.MappingValueNode{n}})
		return err
	case *ast.SequenceNode:
		return w.sequence(n)
	case *ast.AnchorNode:
		return w.anchor(n)
	case *ast.AliasNode:
		return w.alias(n)
	case *ast.TagNode:
		return w.tagged(n)
	}
	return w.scalar(n)
}

func (w *yamlWriter) sequence(n *ast.SequenceNode) error {
	w.out = append(w.out, '[')
	for i, v := range n.Values {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.value(v); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	return nil
}

func (w *yamlWriter) anchor(n *ast.AnchorNode) error {
	name := n.Name.GetToken().Value
	a := anchored{from: len(w.out)}
	w.anchors[name] = anchored{open: true}
	var err error
	if m, ok := n.Value.(*ast.MappingNode); ok {
		a.mapping = true
		a.pairs, err = w.mapping(m)
	} else {
		err = w.value(n.Value)
	}
	a.to = len(w.out)
	w.anchors[name] = a
	return err
}

func (w *yamlWriter) alias(n ast.Node) error {
	a, err := w.anchored(n)
	if err != nil {
		return err
	}
	w.out = append(w.out, w.out[a.from:a.to]...)
	return nil
}

// anchored returns the value of an alias.
func (w *yamlWriter) anchored(n ast.Node) (anchored, error) {
	alias, ok := n.(*ast.AliasNode)
	if !ok {
		return anchored{}, wrong(n, "want an alias, or a list of aliases, behind <<")
	}
	name := alias.Value.GetToken().Value
	a, known := w.anchors[name]
	switch {
	case !known:
		return a, wrong(n, "no anchor &%s stands before this alias", name)
	case a.open:
		return a, wrong(n, "the alias *%s leads to itself", name)
	}
	return a, nil
}

// mapping writes an object, and returns where its entries are.
func (w *yamlWriter) mapping(n *ast.MappingNode) ([]pair, error) {
	own, err := keysOf(n)
	if err != nil {
		return nil, err
	}
	var pairs []pair
	w.out = append(w.out, '{')
	for i, entry := range n.Values {
		if _, merges := entry.Key.(*ast.MergeKeyNode); merges {
			if pairs, err = w.merge(entry.Value, own, pairs); err != nil {
				return nil, err
			}
			continue
		}
		from := w.key(own.inOrder[i], pairs)
		if err := w.value(entry.Value); err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{own.inOrder[i], from, len(w.out)})
	}
	w.out = append(w.out, '}')
	return pairs, nil
}

// key writes a key, and returns where its value begins.
func (w *yamlWriter) key(key string, before []pair) int {
	if len(before) > 0 {
		w.out = append(w.out, ',')
	}
	w.out = append(appendQuoted(w.out, key), ':')
	return len(w.out)
}

// merge writes the entries of the mappings that << names. The mapping's own
// entries take precedence, and of several mappings the first.
func (w *yamlWriter) merge(of ast.Node, own ownKeys, pairs []pair) ([]pair, error) {
	sources := []ast.Node{of}
	if list, ok := of.(*ast.SequenceNode); ok {
		sources = list.Values
	}
	for _, source := range sources {
		a, err := w.anchored(source)
		if err != nil {
			return nil, err
		}
		if !a.mapping {
			return nil, wrong(source, "<< takes the entries of a mapping, which this is not")
		}
		for _, p := range a.pairs {
			if own.has[p.key] {
				continue
			}
			own.has[p.key] = true
			from := w.key(p.key, pairs)
			w.out = append(w.out, w.out[p.from:p.to]...)
			pairs = append(pairs, pair{p.key, from, len(w.out)})
		}
		if int64(len(w.out)) > w.limit {
			return nil, wrong(source, "up to here the value has more than the %d bytes of max_value_bytes", w.limit)
		}
	}
	return pairs, nil
}

// ownKeys are the keys of the mapping itself. Those of << are empty.
type ownKeys struct {
	inOrder []string
	has     map[string]bool
}

// keysOf returns the keys of a mapping, none of which may occur twice.
func keysOf(n *ast.MappingNode) (ownKeys, error) {
	keys := ownKeys{inOrder: make([]string, len(n.Values)), has: make(map[string]bool, len(n.Values))}
	merges := 0
	for i, entry := range n.Values {
		if _, ok := entry.Key.(*ast.MergeKeyNode); ok {
			if merges++; merges > 1 {
				return keys, wrong(entry.Key, "the key << stands here a second time; give it a list")
			}
			continue
		}
		key, err := keyText(entry.Key)
		if err != nil {
			return keys, err
		}
		if keys.has[key] {
			return keys, wrong(entry.Key, "the key %q stands here a second time; it is on line %d already",
				key, beginning(n.Values[slices.Index(keys.inOrder, key)].Key).Line)
		}
		keys.inOrder[i], keys.has[key] = key, true
	}
	return keys, nil
}
