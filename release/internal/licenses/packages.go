package licenses

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Package is a package that is linked into the program.
type Package struct {
	ImportPath string
	Dir        string
	Standard   bool
	Module     Module
}

// Module is what has a package; empty for the standard library.
type Module struct{ Path, Version, Dir string }

// Packages returns the packages of the program for a target.
func (s Source) Packages(ctx context.Context, t Target) ([]Package, error) {
	var problem bytes.Buffer
	c := s.goCommand(ctx, t, "list", "-deps", "-json=ImportPath,Dir,Standard,Module", program)
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %v: %w\n%s", t, err, problem.Bytes())
	}
	return readPackages(bytes.NewReader(out))
}

func readPackages(list io.Reader) (packages []Package, err error) {
	for decoder := json.NewDecoder(list); ; {
		var p struct {
			Package
			Module struct {
				Module
				Replace *Module
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		p.Package.Module = p.Module.Module
		switch of := p.Module.Replace; {
		case of != nil && strings.HasPrefix(of.Path, "."):
			p.Package.Module = Module{} // a part of this repository, such as the client
		case of != nil:
			p.Package.Module = *of
		}
		packages = append(packages, p.Package)
	}
}
