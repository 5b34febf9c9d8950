package files

import (
	"maps"

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
	merged  int64 // entries that << looked at
}

// anchored is the value of an anchor, as offsets in out, or as text for a key,
// which is not a value in out.
type anchored struct {
	open     bool // still being written
	from, to int
	text     []byte
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
	if m := asMapping(n); m != nil {
		_, err := w.mapping(m)
		return err
	}
	switch n := n.(type) {
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
	if m := asMapping(n.Value); m != nil {
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
	w.out = append(w.out, w.json(a)...)
	return nil
}

// json returns the value of an anchor.
func (w *yamlWriter) json(a anchored) []byte {
	if a.text != nil {
		return a.text
	}
	return w.out[a.from:a.to]
}

// anchored returns the value of an alias.
func (w *yamlWriter) anchored(n ast.Node) (anchored, error) {
	alias, ok := n.(*ast.AliasNode)
	if !ok {
		return anchored{}, wrong(n, "want a mapping, an alias, or a list of them, behind <<")
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
	var pairs []pair
	keys := ownKeys{of: n, lines: make(map[string]int, len(n.Values))}
	w.out = append(w.out, '{')
	for _, entry := range n.Values {
		if _, merges := entry.Key.(*ast.MergeKeyNode); merges {
			var err error
			if pairs, err = w.merge(entry, &keys, pairs); err != nil {
				return nil, err
			}
			continue
		}
		key, err := w.ownKey(entry.Key, keys)
		if err != nil {
			return nil, err
		}
		from := w.key(key, pairs)
		if err := w.value(entry.Value); err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{key, from, len(w.out)})
	}
	w.out = append(w.out, '}')
	return pairs, nil
}

// ownKeys are the keys of a mapping that were written so far, with their lines.
type ownKeys struct {
	of     *ast.MappingNode
	lines  map[string]int
	merged bool // << was there
}

// ownKey returns a key of the mapping, which may not occur twice.
func (w *yamlWriter) ownKey(n ast.Node, keys ownKeys) (string, error) {
	key, err := w.keyText(n)
	if err != nil {
		return "", err
	}
	if line, ok := keys.lines[key]; ok {
		return "", wrong(n, "the key %q stands here a second time; it is on line %d already", key, line)
	}
	keys.lines[key] = beginning(n).Line
	return key, nil
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
func (w *yamlWriter) merge(entry *ast.MappingValueNode, keys *ownKeys, pairs []pair) ([]pair, error) {
	if keys.merged {
		return nil, wrong(entry.Key, "the key << stands here a second time; give it a list")
	}
	keys.merged = true
	pairs, err := w.mergeAll(entry.Value, w.allKeys(keys.of), pairs)
	for _, p := range pairs {
		if _, own := keys.lines[p.key]; !own {
			keys.lines[p.key] = beginning(entry).Line
		}
	}
	return pairs, err
}

// allKeys returns the keys of a mapping, but for those of << and for aliases of
// an anchor further below.
func (w *yamlWriter) allKeys(n *ast.MappingNode) map[string]bool {
	all := make(map[string]bool, len(n.Values))
	for _, entry := range n.Values {
		if _, merges := entry.Key.(*ast.MergeKeyNode); merges {
			continue
		}
		if key, err := w.keyText(entry.Key); err == nil {
			all[key] = true
		}
	}
	return all
}

// mergeAll writes the entries of one mapping or of a list of them, without
// those that has has, and adds what it wrote to has.
func (w *yamlWriter) mergeAll(of ast.Node, has map[string]bool, pairs []pair) ([]pair, error) {
	sources := []ast.Node{of}
	if list, ok := of.(*ast.SequenceNode); ok {
		sources = list.Values
	}
	var err error
	for _, source := range sources {
		if m := asMapping(source); m != nil {
			pairs, err = w.mergeMapping(m, has, pairs)
		} else {
			pairs, err = w.mergeAlias(source, has, pairs)
		}
		if err != nil {
			return nil, err
		}
		if int64(len(w.out)) > w.limit {
			return nil, wrong(source, "up to here the value has more than the %d bytes of max_value_bytes", w.limit)
		}
	}
	return pairs, nil
}

func (w *yamlWriter) mergeAlias(source ast.Node, has map[string]bool, pairs []pair) ([]pair, error) {
	a, err := w.anchored(source)
	if err != nil {
		return nil, err
	}
	if !a.mapping {
		return nil, wrong(source, "<< takes the entries of a mapping, which this is not")
	}
	if w.merged += int64(1 + len(a.pairs)); w.merged > w.limit {
		return nil, wrong(source, "up to here << looks at more than %d entries", w.limit)
	}
	for _, p := range a.pairs {
		if has[p.key] {
			continue
		}
		has[p.key] = true
		from := w.key(p.key, pairs)
		w.out = append(w.out, w.out[p.from:p.to]...)
		pairs = append(pairs, pair{p.key, from, len(w.out)})
	}
	return pairs, nil
}

// mergeMapping writes the entries of a mapping that stands behind << itself.
func (w *yamlWriter) mergeMapping(m *ast.MappingNode, has map[string]bool, pairs []pair) ([]pair, error) {
	mine := w.allKeys(m)
	maps.DeleteFunc(mine, func(key string, _ bool) bool { return has[key] })
	maps.Copy(has, mine)
	keys := ownKeys{of: m, lines: make(map[string]int, len(m.Values))}
	for _, entry := range m.Values {
		if _, merges := entry.Key.(*ast.MergeKeyNode); merges {
			var err error
			if pairs, err = w.mergeAll(entry.Value, has, pairs); err != nil {
				return nil, err
			}
			continue
		}
		key, err := w.ownKey(entry.Key, keys)
		if err != nil {
			return nil, err
		}
		if !mine[key] {
			continue
		}
		from := w.key(key, pairs)
		if err := w.value(entry.Value); err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{key, from, len(w.out)})
	}
	return pairs, nil
}

// asMapping returns a node as a mapping, or nil if it is none.
func asMapping(n ast.Node) *ast.MappingNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n
	case *ast.MappingValueNode: // of a single entry
		return &ast.MappingNode{BaseNode: &ast.BaseNode{}, Start: n.Start, Values: []*ast.MappingValueNode{n}}
	}
	return nil
}
