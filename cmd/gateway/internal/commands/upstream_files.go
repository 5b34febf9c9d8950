package commands

import (
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/source/files"
)

func filesConfig(f config.FilesSource) files.Config {
	return files.Config{Dir: f.Dir, MaxValueBytes: f.MaxValueBytes, MaxBytes: f.MaxBytes, Rescan: f.Rescan}
}
