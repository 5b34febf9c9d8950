package pack

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// unreleased is the version of the chart in the repository.
const unreleased = "0.0.0-dev"

// Chart returns the archive of the chart in this folder, as `helm package` makes it, but with the
// version of a release, and the same bytes for the same files.
func Chart(chart fs.FS, version string, modified time.Time) ([]byte, error) {
	var files []File
	err := fs.WalkDir(chart, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(chart, name)
		if err != nil {
			return err
		}
		if name == "Chart.yaml" {
			if strings.Count(string(data), ": "+unreleased+"\n") != 2 {
				return fmt.Errorf("want version and appVersion %s in %s: a release writes its own in their place", unreleased, name)
			}
			data = []byte(strings.ReplaceAll(string(data), ": "+unreleased+"\n", ": "+version+"\n"))
		}
		files = append(files, File{Name: path.Join("watchtide", name), Mode: 0o644, Data: data})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return TarGzip(files, modified)
}
