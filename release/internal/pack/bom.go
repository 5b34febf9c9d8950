package pack

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"github.com/watchtide/watchtide/release/internal/licenses"
)

// ProgramBOM is a compiled gateway.
type ProgramBOM struct {
	Version string
	Time    time.Time
	Data    []byte
	Lock    []byte // package-lock.json of its dashboard
}

// JSON returns the bill of materials in CycloneDX's format.
func (p ProgramBOM) JSON() ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(p.Data))
	if err != nil {
		return nil, err
	}
	modules := goModules(info)
	packages, err := npmPackages(p.Lock)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(p.Data)
	root := cyclonedx.Component{
		BOMRef: "watchtide", Type: cyclonedx.ComponentTypeApplication, Name: "watchtide", Version: p.Version,
		PackageURL: "pkg:golang/" + info.Main.Path + "@v" + p.Version + "#cmd/gateway",
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses:   license("Apache-2.0"),
	}
	components := slices.Concat(modules, packages)
	out := cyclonedx.NewBOM()
	out.Metadata = &cyclonedx.Metadata{Timestamp: p.Time.UTC().Format(time.RFC3339), Component: &root}
	out.Components = &components
	out.Dependencies = dependencies(root, components)
	var text bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(out)
	return text.Bytes(), err
}

func dependencies(root cyclonedx.Component, components []cyclonedx.Component) *[]cyclonedx.Dependency {
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	return &[]cyclonedx.Dependency{{Ref: root.BOMRef, Dependencies: &refs}}
}

func goModules(info *debug.BuildInfo) []cyclonedx.Component {
	version := strings.TrimPrefix(info.GoVersion, "go")
	out := []cyclonedx.Component{library("std", info.GoVersion, "pkg:golang/std@"+version)}
	for _, m := range licenses.Modules(info) {
		out = append(out, library(m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version))
	}
	return out
}

// npmPackages returns the packages of a lock file that are not for development only.
func npmPackages(lock []byte) ([]cyclonedx.Component, error) {
	var file struct {
		Packages map[string]struct {
			Version, Integrity, License string
			Dev                         bool
		}
	}
	if err := json.Unmarshal(lock, &file); err != nil {
		return nil, err
	}
	var out []cyclonedx.Component
	for _, path := range slices.Sorted(maps.Keys(file.Packages)) {
		p := file.Packages[path]
		if path == "" || p.Dev {
			continue
		}
		name := path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):]
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Integrity, "sha512-"))
		if err != nil || len(sum) != 64 {
			return nil, fmt.Errorf("%s: integrity %q: want a SHA-512", name, p.Integrity)
		}
		c := library(name, p.Version, "pkg:npm/"+strings.Replace(name, "@", "%40", 1)+"@"+p.Version)
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA512, Value: hex.EncodeToString(sum)}}
		c.Licenses = license(p.License)
		out = append(out, c)
	}
	return out, nil
}

func library(name, version, url string) cyclonedx.Component {
	return cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: url}
}

func license(id string) *cyclonedx.Licenses {
	return &cyclonedx.Licenses{{License: &cyclonedx.License{ID: id}}}
}
