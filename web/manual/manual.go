// Package manual renders the documentation as plain pages: HTML with one style sheet and
// no script. The pages link to each other by relative URLs, so that they also work behind
// a proxy that serves the gateway under a path.
package manual

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// StyleSheet is served beside the pages as style.css.
//
//go:embed style.css
var StyleSheet []byte

//go:embed page.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// order is that of the list of contents; the remaining documents follow by name.
var order = []string{
	"installing.md", "configuration.md", "sources.md", "access.md", "command-line.md", "following-changes.md", "dashboard.md",
	"protocol.md", "behind-a-proxy.md", "doctor.md", "monitoring.md", "metrics.md", "logs.md", "tracing.md", "upgrading.md",
	"scale.md", "performance.md", "reliability.md", "embedding.md", "writing-a-source.md",
}

// document is one document. Static after construction.
type document struct {
	name  string // its path, with .md
	title string
	body  template.HTML
}

// Render returns the pages by their path: that of the document without .md, and "" for the
// list of contents.
func Render(documents fs.FS) (map[string][]byte, error) {
	all, err := read(documents)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, d := range append(all, document{title: "Documentation"}) {
		var page bytes.Buffer
		err := pageTemplate.Execute(&page, map[string]any{
			"Title": d.title, "Body": d.body, "Contents": contents(all, d.name), "Root": strings.Repeat("../", strings.Count(d.name, "/")),
		})
		if err != nil {
			return nil, err
		}
		out[strings.TrimSuffix(d.name, ".md")] = page.Bytes()
	}
	return out, nil
}

// entry is a line of the list of contents.
type entry struct {
	Title, URL string
	Current    bool
}

// contents lists all documents, as seen from one of them.
func contents(all []document, from string) (out []entry) {
	root := strings.Repeat("../", strings.Count(from, "/"))
	for _, d := range all {
		out = append(out, entry{d.title, root + strings.TrimSuffix(d.name, ".md"), d.name == from})
	}
	return out
}

func read(documents fs.FS) ([]document, error) {
	var out []document
	err := fs.WalkDir(documents, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		source, err := fs.ReadFile(documents, name)
		if err != nil {
			return err
		}
		rendered, err := render(documents, name, source)
		out = append(out, rendered)
		return err
	})
	slices.SortStableFunc(out, func(a, b document) int { return rank(a.name) - rank(b.name) })
	return out, err
}

// rank places the documents of a folder after the one that introduces them.
func rank(name string) int {
	below := 0
	if dir := path.Dir(name); dir != "." {
		name, below = dir+".md", 1
	}
	if at := slices.Index(order, name); at >= 0 {
		return 2*at + below
	}
	return 2 * len(order)
}

// The content security policy forbids inline styles, so columns are aligned by attributes.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

// render renders one document. Raw HTML in it is left out.
func render(documents fs.FS, name string, source []byte) (document, error) {
	root := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	out := document{name: name, title: strings.TrimSuffix(path.Base(name), ".md")}
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 1 {
			out.title = string(h.Lines().Value(source))
			break
		}
	}
	if err := relink(root, documents, name); err != nil {
		return document{}, fmt.Errorf("%s: %w", name, err)
	}
	var html bytes.Buffer
	if err := markdown.Renderer().Render(&html, source, root); err != nil {
		return document{}, fmt.Errorf("%s: %w", name, err)
	}
	out.body = template.HTML(html.String()) // from documents that are compiled in
	return out, nil
}

// relink makes links between documents links between pages. Other files of the repository
// are not served: links to them are replaced by their texts. Images and comments are left out.
func relink(root ast.Node, documents fs.FS, name string) error {
	var links []*ast.Link
	var omitted []ast.Node
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				links = append(links, n)
			}
		case *ast.Image:
			if entering {
				omitted = append(omitted, n)
			}
		case *ast.HTMLBlock:
			if entering && n.HTMLBlockType == ast.HTMLBlockType2 { // a comment
				omitted = append(omitted, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range omitted {
		n.Parent().RemoveChild(n.Parent(), n)
	}
	for _, l := range links {
		target, anchor, hasAnchor := strings.Cut(string(l.Destination), "#")
		if target == "" || strings.Contains(target, "://") {
			continue
		}
		if _, err := fs.Stat(documents, path.Join(path.Dir(name), target)); err != nil || path.Ext(target) != ".md" {
			unlink(l)
			continue
		}
		target = strings.TrimSuffix(target, ".md")
		if hasAnchor {
			target += "#" + anchor
		}
		l.Destination = []byte(target)
	}
	return err
}

func unlink(l *ast.Link) {
	parent := l.Parent()
	for c := l.FirstChild(); c != nil; c = l.FirstChild() {
		parent.InsertBefore(parent, l, c)
	}
	parent.RemoveChild(parent, l)
}

// anchors gives headings the same anchors as GitHub, on which the links of the documents
// rely.
type anchors struct{}

func (anchors) Generate(value []byte, _ ast.NodeKind) []byte { return []byte(Anchor(string(value))) }

func (anchors) Put([]byte) {}
