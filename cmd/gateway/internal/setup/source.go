package setup

import (
	"cmp"
	"fmt"
	"strings"
)

// Source is an upstream of the configuration.
type Source struct {
	Type    string
	Where   string   // for people
	Fields  []string // lines of YAML
	Notes   []string // comments on it
	Watches []Watch
	// Problem is why it could not be asked what there is to watch; nil: it was.
	Problem error
}

// Watch is a collection of a source.
type Watch struct {
	Name   string
	Fields string // of a YAML mapping
	Note   string // a comment on it; empty: none
}

// maxWatches is how many watches of one source are written: enough to begin with.
const maxWatches = 5

// maxName is the longest name of a watch.
const maxName = 64

// watchName returns a name for a watch of something that has another kind of name.
func watchName(of, otherwise string) string {
	clean := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r) {
			return r
		}
		return '-'
	}, of)
	clean = strings.Trim(clean, "-._")
	return cmp.Or(clean[:min(len(clean), maxName)], otherwise)
}

// distinct gives each watch of the configuration another name.
func distinct(sources []Source) {
	taken := map[string]bool{}
	for i := range sources {
		for j := range sources[i].Watches {
			w := &sources[i].Watches[j]
			name := w.Name
			for n := 2; taken[w.Name]; n++ {
				suffix := fmt.Sprint("-", n)
				w.Name = name[:min(len(name), maxName-len(suffix))] + suffix
			}
			taken[w.Name] = true
		}
	}
}
