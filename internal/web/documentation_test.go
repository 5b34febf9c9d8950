package web

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages returns the pages of the documentation by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range Paths() {
		if !strings.HasPrefix(p, "/docs/") || path.Ext(p) != "" {
			continue
		}
		body, err := io.ReadAll(get(t, p).Body)
		if err != nil {
			t.Fatal(err)
		}
		out[p] = string(body)
	}
	for _, p := range []string{"/docs/", "/docs/protocol", "/docs/sources/etcd", "/docs/browser-client", "/docs/go-client", "/docs/glossary"} {
		if out[p] == "" {
			t.Fatalf("there is no page %s among %d", p, len(out))
		}
	}
	return out
}

var reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// TestDocumentationLinksLeadSomewhere follows every link of every page, anchors included.
func TestDocumentationLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	anchored := 0
	for path, page := range all {
		base := &url.URL{Path: path}
		for _, m := range reference.FindAllStringSubmatch(page, -1) {
			target, err := base.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %q: %v", path, m[1], err)
				continue
			}
			if target.Host != "" {
				continue
			}
			if r := get(t, target.Path); r.StatusCode != http.StatusOK {
				t.Errorf("%s: link to %s: %s", path, m[1], r.Status)
			}
			if target.Fragment == "" {
				continue
			}
			anchored++
			if !strings.Contains(all[target.Path], ` id="`+target.Fragment+`"`) {
				t.Errorf("%s: link to %s: there is no such heading", path, m[1])
			}
		}
	}
	if anchored == 0 {
		t.Error("found no links to headings")
	}
}

// TestDocumentationKeepsThePolicy: no page has an inline script, an inline style or an image of
// another origin, and none has Markdown that was not understood.
func TestDocumentationKeepsThePolicy(t *testing.T) {
	unread := regexp.MustCompile(`\]\([a-z./]+\.md|^\|---|raw HTML omitted`)
	code := regexp.MustCompile(`(?s)<code.*?</code>`) // shown, and not loaded
	for path, page := range pages(t) {
		for _, bad := range []*regexp.Regexp{inline, rooted, unread} {
			if found := bad.FindString(code.ReplaceAllString(page, "")); found != "" {
				t.Errorf("%s: %q", path, found)
			}
		}
		if n := strings.Count(page, "<h1"); n != 1 {
			t.Errorf("%s has %d headings of level 1, want one", path, n)
		}
		if strings.Contains(page, "<title> ·") {
			t.Errorf("%s has no title", path)
		}
	}
}

func TestDocumentationWithoutItsSlash(t *testing.T) {
	if r := get(t, "/docs"); r.StatusCode != http.StatusFound || r.Header.Get("Location") != "docs/" {
		t.Errorf("%s, Location %q: want a relative redirect", r.Status, r.Header.Get("Location"))
	}
}

// TestDocumentationIsInOrder: the list of contents has a document before those of its folder.
func TestDocumentationIsInOrder(t *testing.T) {
	contents := pages(t)["/docs/"]
	last := -1
	for _, name := range []string{"./", "configuration", "sources", "sources/etcd", "glossary", "protocol", "browser-client", "access", "embedding"} {
		at := strings.LastIndex(contents, `href="`+name+`"`)
		if at <= last {
			t.Errorf("%s is at %d, want it after %d", name, at, last)
		}
		last = at
	}
}

// TestDocumentationIsFound: the index has each page, and each section of it, with a URL that leads there.
func TestDocumentationIsFound(t *testing.T) {
	var index []Section
	if err := json.NewDecoder(get(t, "/docs/search.json").Body).Decode(&index); err != nil {
		t.Fatal(err)
	}
	all, found := pages(t), map[string]bool{}
	for _, s := range index {
		target, err := (&url.URL{Path: "/docs/"}).Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		if page := all[target.Path]; page == "" || target.Fragment != "" && !strings.Contains(page, ` id="`+target.Fragment+`"`) {
			t.Errorf("%s: %s: there is no such heading", s.Page, s.URL)
		}
		found[target.Path] = true
	}
	if len(found) != len(all) {
		t.Errorf("the index has %d pages, want %d", len(found), len(all))
	}
	at := slices.IndexFunc(index, func(s Section) bool { return s.URL == "protocol#words" })
	if at < 0 || index[at].Heading != "Words" || !strings.Contains(index[at].Text, "source one upstream system that can be watched") {
		t.Errorf("the words of the protocol are at %d: %+v", at, index[max(at, 0)])
	}
	for _, bad := range []*regexp.Regexp{rooted, markup} {
		if hit := bad.Find(Search); hit != nil {
			t.Errorf("search.js has %q", hit)
		}
	}
}
