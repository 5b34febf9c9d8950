package commands

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is the maximum number of links on a path.
const maxLinks = 40

// steps adds to found the names on the path to a file whose change can replace the file: each
// link on the path, and the file itself. If one of them is missing, it is the last one.
// Kubernetes has each file of a volume lead through the link ..data, which it replaces when the
// content changes.
func steps(name string, found map[string]struct{}) {
	name, err := filepath.Abs(name)
	if err != nil {
		return // the working directory is gone
	}
	volume := filepath.VolumeName(name)
	at, rest := volume+string(filepath.Separator), strings.TrimPrefix(name[len(volume):], string(filepath.Separator))
	for links := 0; rest != ""; {
		part, after, _ := strings.Cut(rest, string(filepath.Separator))
		next := filepath.Join(at, part)
		info, err := os.Lstat(next)
		switch {
		case err != nil || after == "" && info.Mode()&os.ModeSymlink == 0:
			found[next] = struct{}{}
			return
		case info.Mode()&os.ModeSymlink == 0:
			at, rest = next, after
			continue
		}
		found[next] = struct{}{}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(at, target)
		}
		volume = filepath.VolumeName(target)
		at, rest = volume+string(filepath.Separator), strings.TrimPrefix(filepath.Join(target, after)[len(volume):], string(filepath.Separator))
	}
}
