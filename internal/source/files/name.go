package files

import (
	"path"
	"strings"
)

// format is the format of a file's content.
type format uint8

const (
	noFormat format = iota // not a relevant file
	jsonFormat
	yamlFormat
)

// formatOf derives the format from the name of a file. Temporary files of
// editors and tools are not relevant: names that begin with a dot (.a.json.swp
// of vim, .#a.json of Emacs, ..data of Kubernetes) or a hash, and everything
// that does not end in one of the extensions (a.json~, 4913, a.json.tmp,
// #a.json#).
func formatOf(name string) format {
	if ignored(name) || name[0] == '#' {
		return noFormat
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		return jsonFormat
	case ".yaml", ".yml":
		return yamlFormat
	}
	return noFormat
}

// ignored reports whether files and directories of this name are ignored.
func ignored(name string) bool { return name == "" || name[0] == '.' }

// hidden reports whether a path leads through an ignored name.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") && name != "." || strings.Contains(name, "/.")
}

// keyOf returns the key of the file at a path below the directory.
func keyOf(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// below returns the path of an entry of a directory, both below the root, which
// is ".".
func below(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// within reports whether a path is a directory or lies in it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}
