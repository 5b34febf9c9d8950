package web

import (
	_ "embed"
	"encoding/json"
	"io/fs"
	"path"

	"github.com/watchtide/watchtide/docs"
)

//go:embed bundle/README.md
var clientDocument []byte

// manualFiles returns the documentation, by the paths of its pages and of what they load.
func manualFiles() map[string]file {
	pages, index, err := Render(documents())
	if err != nil {
		panic("web: " + err.Error()) // the documents are compiled in: a test has rendered them
	}
	found, err := json.Marshal(index)
	if err != nil {
		panic("web: " + err.Error()) // texts: never
	}
	out := map[string]file{
		"/docs/style.css":   newFile("style.css", StyleSheet),
		"/docs/search.js":   newFile("search.js", Search),
		"/docs/search.json": newFile("search.json", found),
	}
	for name, content := range pages {
		out["/docs/"+name] = newFile("page.html", content)
	}
	return out
}

// documents returns the documents that become pages, by their path below docs/.
func documents() map[string][]byte {
	out := map[string][]byte{BrowserClient: clientDocument}
	err := fs.WalkDir(docs.Pages, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		out[name], err = fs.ReadFile(docs.Pages, name)
		return err
	})
	if err != nil {
		panic("web: " + err.Error()) // the documents are compiled in: a test has rendered them
	}
	return out
}
