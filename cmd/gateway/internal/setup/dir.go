package setup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// dir describes a directory of files.
func dir(told string) search {
	return func(context.Context) *Source {
		if told == "" {
			return nil
		}
		name := absolute(told)
		s := &Source{Type: "files", Where: name, Fields: []string{"dir: " + quoted(name)}}
		w := Watch{Name: watchName(filepath.Base(name), "files")}
		entries, err := os.ReadDir(name)
		s.Problem = err
		count := 0
		for _, e := range entries {
			switch filepath.Ext(e.Name()) {
			case ".json", ".yaml", ".yml":
				count++
			}
		}
		w.Note = fmt.Sprintf("files of JSON and YAML, without those in subdirectories: %d", count)
		s.Watches = []Watch{w}
		return s
	}
}

// absolute returns a name that does not depend on the working directory.
func absolute(name string) string {
	if whole, err := filepath.Abs(name); err == nil {
		return whole
	}
	return name
}
