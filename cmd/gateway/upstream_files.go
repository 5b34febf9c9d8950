package main

import (
	"github.com/watchtide/watchtide/cmd/gateway/config"
	"github.com/watchtide/watchtide/stream/filesource"
)

func filesConfig(f config.FilesSource) filesource.Config {
	return filesource.Config{Dir: f.Dir, MaxValueBytes: f.MaxValueBytes, MaxBytes: f.MaxBytes, Rescan: f.Rescan}
}
