package web

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"math"
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

// Search is served beside the pages as search.js. It reads the index, beside them as search.json.
//
//go:embed search.js
var Search []byte

//go:embed page.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

const (
	// First is the document that is the first page.
	First = "README.md"
	// BrowserClient is the document that is the page of the browser client.
	BrowserClient = "../web/client/README.md"
)

// groups are the list of contents. Documents in the folder of one follow it by name.
var groups = []struct {
	title     string
	documents []string
}{
	{"First steps", []string{First, "installing.md", "configuration.md", "sources.md", "command-line.md", "following-changes.md", "dashboard.md", "glossary.md"}},
	{"For clients", []string{"protocol.md", BrowserClient, "go-client.md"}},
	{"Operation", []string{"access.md", "behind-a-proxy.md", "doctor.md", "monitoring.md", "metrics.md", "logs.md", "tracing.md", "upgrading.md"}},
	{"How well it works", []string{"performance.md", "reliability.md", "continuity.md", "scale.md"}},
	{"For programmers", []string{"embedding.md", "writing-a-source.md"}},
}

// document is one document. Static after construction.
type document struct {
	name     string // its path below docs/, with .md
	page     string // the path of its page below /docs/
	title    string
	body     template.HTML
	sections []Section
}

// Render returns the pages by their path, "" for the first one, and the index for the search.
// documents are by their path below docs/.
func Render(documents map[string][]byte) (pages map[string][]byte, index []Section, err error) {
	all, err := read(documents)
	if err != nil {
		return nil, nil, err
	}
	pages = map[string][]byte{}
	for _, d := range all {
		var page bytes.Buffer
		err := pageTemplate.Execute(&page, map[string]any{"Title": d.title, "Body": d.body, "Contents": contents(all, d), "Root": root(d.page)})
		if err != nil {
			return nil, nil, err
		}
		pages[d.page] = page.Bytes()
		index = append(index, d.sections...)
	}
	return pages, index, nil
}

// pageOf returns the path of the page of a document.
func pageOf(name string) string {
	switch name {
	case First:
		return ""
	case BrowserClient:
		return "browser-client"
	}
	return strings.TrimSuffix(name, ".md")
}

// root is the way from a page to the first one, without its slash at the end if it is empty.
func root(page string) string { return strings.Repeat("../", strings.Count(page, "/")) }

// urlOf is the way from a page to another one.
func urlOf(from, to string) string {
	if url := root(from) + to; url != "" {
		return url
	}
	return "./"
}

// group is a part of the list of contents.
type group struct {
	Title   string
	Entries []entry
}

// entry is a line of the list of contents.
type entry struct {
	Title, URL     string
	Current, Below bool
}

// contents lists all documents, as seen from one of them.
func contents(all []document, from document) (out []group) {
	for _, d := range all {
		title := groups[rank(d.name)/100].title
		if len(out) == 0 || out[len(out)-1].Title != title {
			out = append(out, group{Title: title})
		}
		entries := &out[len(out)-1].Entries
		*entries = append(*entries, entry{d.title, urlOf(from.page, d.page), d.name == from.name, strings.Contains(d.page, "/")})
	}
	return out
}

// read renders the documents, in the order of the list of contents.
func read(documents map[string][]byte) (out []document, err error) {
	for name := range documents {
		if rank(name) == unlisted {
			return nil, fmt.Errorf("%s is in no group of the list of contents", name)
		}
		rendered, err := render(documents, name)
		if err != nil {
			return nil, err
		}
		out = append(out, rendered)
	}
	slices.SortFunc(out, func(a, b document) int { return cmp.Or(rank(a.name)-rank(b.name), strings.Compare(a.name, b.name)) })
	return out, nil
}

// rank places a document by its group and its place there, and those of a folder after the one that
// introduces them.
func rank(name string) int {
	below := 0
	if dir := path.Dir(name); dir != "." && name != BrowserClient {
		name, below = dir+".md", 1
	}
	for i, g := range groups {
		if at := slices.Index(g.documents, name); at >= 0 {
			return 100*i + 2*at + below
		}
	}
	return unlisted
}

// unlisted is the rank of a document that no group names.
const unlisted = math.MaxInt

// The content security policy forbids inline styles, so columns are aligned by attributes.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

// render renders one document. Raw HTML in it is left out.
func render(documents map[string][]byte, name string) (document, error) {
	source := documents[name]
	tree := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	out := document{name: name, page: pageOf(name), title: strings.TrimSuffix(path.Base(name), ".md")}
	for n := tree.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 1 {
			out.title = string(h.Lines().Value(source))
			break
		}
	}
	if name == BrowserClient {
		out.title = "The browser client" // the document begins with the name of the package
	}
	if err := relink(tree, documents, name); err != nil {
		return document{}, fmt.Errorf("%s: %w", name, err)
	}
	var html bytes.Buffer
	if err := markdown.Renderer().Render(&html, source, tree); err != nil {
		return document{}, fmt.Errorf("%s: %w", name, err)
	}
	out.body = template.HTML(html.String()) // from documents that are compiled in
	out.sections = sections(tree, source, out)
	return out, nil
}

// relink makes links between documents links between pages. Other files of the repository
// are not served: links to them are replaced by their texts. Images and comments are left out.
func relink(tree ast.Node, documents map[string][]byte, name string) error {
	var links []*ast.Link
	var omitted []ast.Node
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
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
		target = path.Join(path.Dir(name), target)
		if _, ok := documents[target]; !ok {
			unlink(l)
			continue
		}
		url := urlOf(pageOf(name), pageOf(target))
		if hasAnchor {
			url += "#" + anchor
		}
		l.Destination = []byte(url)
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
