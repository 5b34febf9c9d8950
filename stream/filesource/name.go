package filesource

import (
	"path"
	"strings"
)

// format is how the content of a file is written.
type format uint8

const (
	noFormat format = iota // not a file of ours
	jsonFormat
	yamlFormat
)

// formatOf tells the format by the name of a file. What editors and tools put
// beside a file while they write it is not a file of ours: names that begin with
// a dot (.a.json.swp of vim, .#a.json of Emacs, ..data of Kubernetes) or a hash,
// and everything that does not end in one of the extensions (a.json~, 4913,
// a.json.tmp, #a.json#).
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

// ignored says whether neither a file nor a directory of this name is looked at.
func ignored(name string) bool { return name == "" || name[0] == '.' }

// hidden says whether a path leads through something that is not looked at.
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

// within says whether a path is a directory or lies in it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}
