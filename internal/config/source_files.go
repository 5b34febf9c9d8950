package config

import "time"

// FilesSource is a source of type "files": a directory of JSON and YAML files.
type FilesSource struct {
	// Dir is the directory ("dir"; required), absolute if the configuration was
	// loaded by an absolute name, else relative to the working directory.
	Dir string `yaml:"dir,required,is=directory"`
	// MaxValueBytes is the most bytes of one file ("max_value_bytes").
	MaxValueBytes int64 `yaml:"max_value_bytes"`
	// MaxBytes is the most bytes of all keys and values ("max_bytes").
	MaxBytes int64 `yaml:"max_bytes"`
	// Rescan is the time between two scans of the whole directory ("rescan"; at
	// least 1s; Off: none but those that are due anyway).
	Rescan time.Duration `yaml:"rescan,min=1s,off"`
}
