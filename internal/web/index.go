package web

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Section is what the search finds: the text from a heading to the next one.
type Section struct {
	// URL is that of the heading, from the first page.
	URL string `json:"url"`
	// Page is the title of the page, Heading that of the section; empty: it begins the page.
	Page    string `json:"page"`
	Heading string `json:"heading,omitempty"`
	Text    string `json:"text"`
}

// sections returns the sections of a document.
func sections(tree ast.Node, source []byte, d document) []Section {
	out := []Section{{URL: urlOf("", d.page), Page: d.title}}
	var words strings.Builder
	end := func() {
		out[len(out)-1].Text = strings.Join(strings.Fields(words.String()), " ")
		words.Reset()
	}
	for n := tree.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		switch {
		case ok && h.Level == 1:
		case ok:
			end()
			heading := plain(h, source)
			out = append(out, Section{URL: urlOf("", d.page) + "#" + Anchor(string(h.Lines().Value(source))), Page: d.title, Heading: heading})
		default:
			words.WriteString(plain(n, source) + " ")
		}
	}
	end()
	return out
}

// plain returns the text of a node, with a space between its blocks and cells.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the callback has no errors
		if !entering {
			if n.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			out.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.String:
			out.Write(n.Value)
		case *ast.FencedCodeBlock:
			out.Write(n.Lines().Value(source))
		case *ast.CodeBlock:
			out.Write(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(out.String())
}
