package decode

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Position returns where a node begins. The token of a block mapping is its
// first ':', which is not the place to report.
func Position(n ast.Node) token.Position {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return Position(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return Position(n.Key)
	}
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return *tk.Position
	}
	return token.Position{Line: 1, Column: 1}
}

// IsMapping reports whether a value is a mapping. A missing value counts as an empty one.
func IsMapping(n ast.Node) bool {
	switch n.(type) {
	case *ast.NullNode, *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

// Pairs returns the keys and values of a mapping; none if n is none.
func Pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// KindOf returns a name for the kind of a value, for error messages.
func KindOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	default:
		return strings.ToLower(n.Type().String())
	}
}

// AliasName returns the name of the anchor that an alias leads to.
func AliasName(n *ast.AliasNode) string {
	if n.Value == nil || n.Value.GetToken() == nil {
		return ""
	}
	return n.Value.GetToken().Value
}

// MappingAdvice suggests how to turn a value into a mapping.
func MappingAdvice(n ast.Node) string {
	switch n := n.(type) {
	case *ast.SequenceNode:
		if !n.IsFlowStyle {
			return `: write the names without "-"`
		}
	case *ast.StringNode:
		if strings.Contains(n.Value, ":") {
			return `: write a space after ":"`
		}
	}
	return ""
}

// IsNumber reports whether a value is a number.
func IsNumber(n ast.Node) bool {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return true
	}
	return false
}

// HomeOf returns the section to which a mapping seems to belong; empty: none.
func HomeOf(n ast.Node) string {
	for _, pair := range Pairs(n) {
		switch pair.Key.GetToken().Value {
		case "type":
			return "sources"
		case "source":
			return "watches"
		}
	}
	return ""
}
