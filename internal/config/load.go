package config

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/goccy/go-yaml/ast"
	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// Error is one error in a configuration file, or, without a line, on the command line.
type Error = decode.Mistake

// Errors are all errors of a configuration file, in the order of the file; never empty.
type Errors = decode.Mistakes

// MaxFileBytes is the most bytes that a configuration file may have.
const MaxFileBytes = 1 << 20

// Environment has the inputs of a configuration outside its file.
type Environment struct {
	// Getenv looks up an environment variable; nil: os.LookupEnv.
	Getenv func(name string) (string, bool)
	// ReadFile reads a file that the configuration names; nil: os.ReadFile.
	ReadFile func(name string) ([]byte, error)
	// Stat describes a file that the configuration names; nil: os.Stat.
	Stat func(name string) (fs.FileInfo, error)
	// Flags are the values of the command line.
	Flags Flags
}

func (e Environment) withDefaults() Environment {
	if e.Getenv == nil {
		e.Getenv = os.LookupEnv
	}
	if e.ReadFile == nil {
		e.ReadFile = os.ReadFile
	}
	if e.Stat == nil {
		e.Stat = os.Stat
	}
	return e
}

// Load reads the file, and the files that it names. An error is an Errors, or
// why the file cannot be read.
func Load(file string, env Environment) (*Config, error) {
	data, err := env.withDefaults().ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return Parse(file, data, env)
}

// Parse reads data as the content of file, and the files that it names. The
// error is an Errors. Without a file, it validates the flags.
func Parse(file string, data []byte, env Environment) (*Config, error) {
	d := newDecoder(file, env)
	c := Default()
	if body := d.document(data); body != nil {
		d.Section(decode.Value{Node: body}, c)
		d.views(c)
		d.templates(c)
		d.policy(c)
		d.credentials(c)
	}
	d.flags.override(c)
	d.exposure(c)
	d.applied(c)
	if len(d.Errs) > 0 {
		return nil, d.Errs.Sorted()
	}
	return c, nil
}

// document parses the YAML and returns its one document; nil: empty, or an
// error was added.
func (d *decoder) document(data []byte) ast.Node {
	if len(data) > MaxFileBytes {
		d.At(1, 1, "the file has %d bytes; at most %d are read", len(data), MaxFileBytes)
		return nil
	}
	root, anchors, wrong := decode.ParseYAML(data)
	if wrong != nil {
		d.At(wrong.Line, wrong.Column, "%s", wrong.Message)
	}
	d.Anchors = anchors
	return root
}
