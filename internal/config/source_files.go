package config

import "time"

// FilesSource is a source of type "files": a directory of JSON and YAML files.
type FilesSource struct {
	// Dir is the directory, absolute if the configuration was loaded by an absolute
	// name, else relative to the working directory.
	Dir string `yaml:"dir,required,is=directory"`
	// MaxValueBytes is the most bytes of one file.
	MaxValueBytes int64 `yaml:"max_value_bytes"`
	// MaxBytes is the most bytes of all keys and values.
	MaxBytes int64 `yaml:"max_bytes"`
	// Rescan is the time between two scans of the whole directory (Off: none but
	// those that are due anyway).
	Rescan time.Duration `yaml:"rescan,min=1s,off"`
}
