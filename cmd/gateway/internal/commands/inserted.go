package commands

import (
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// leastInserted is the length of the shortest text that is hidden. A shorter one, such as a
// port, would be hidden everywhere.
const leastInserted = 6

// inserted has the texts of environment variables that configurations have inserted with
// ${NAME}, and hides them: errors, logs and answers to operators show ${NAME} instead. A text
// stays hidden when a later configuration does not insert it any more.
//
// All its methods may be called from any goroutine.
type inserted struct {
	replacer atomic.Pointer[strings.Replacer] // nil: nothing was inserted

	mu    sync.Mutex
	names map[string]string // by text; guarded by mu
}

// Getenv looks up a variable for a configuration, and hides its text from now on.
func (i *inserted) Getenv(name string) (string, bool) {
	text, set := os.LookupEnv(name)
	if len(text) < leastInserted {
		return text, set
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.names[text]; !known {
		if i.names == nil {
			i.names = map[string]string{}
		}
		i.names[text] = name
		i.replacer.Store(replacer(i.names))
	}
	return text, set
}

// replacer replaces each text, in every form in which messages have it, by its name.
func replacer(names map[string]string) *strings.Replacer {
	type pair struct{ text, shown string }
	var pairs []pair
	for text, name := range names {
		forms := []string{text, url.PathEscape(text), url.QueryEscape(text), (&url.URL{Path: text}).EscapedPath(), filepath.Clean(text)}
		for range 2 { // an error quotes a text, and the log quotes the error
			for _, form := range forms {
				forms = append(forms, within(strconv.Quote(form)), within(inJSON(form)))
			}
		}
		for _, form := range forms {
			if len(form) >= leastInserted {
				pairs = append(pairs, pair{form, "${" + name + "}"})
			}
		}
	}
	// The longest first: one text may be a part of another one.
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), strings.Compare(a.text, b.text))
	})
	var all []string
	for _, p := range slices.Compact(pairs) {
		all = append(all, p.text, p.shown)
	}
	return strings.NewReplacer(all...)
}

// inJSON is a text as slog writes it in JSON.
func inJSON(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// within removes quotation marks.
func within(quoted string) string { return quoted[1 : len(quoted)-1] }

// Hide returns a message without the inserted texts.
func (i *inserted) Hide(message string) string {
	if r := i.replacer.Load(); r != nil {
		return r.Replace(message)
	}
	return message
}

// writer returns a writer that hides the inserted texts in each line or message that is
// written at once.
func (i *inserted) writer(to io.Writer) io.Writer { return hidingWriter{i, to} }

type hidingWriter struct {
	inserted *inserted
	to       io.Writer
}

func (w hidingWriter) Write(p []byte) (int, error) {
	if w.inserted.replacer.Load() == nil {
		return w.to.Write(p)
	}
	if _, err := io.WriteString(w.to, w.inserted.Hide(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
