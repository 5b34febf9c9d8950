package pack

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers itself
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers itself

	"github.com/watchtide/watchtide/release/internal/licenses"
)

// DistroFormats are the kinds of packages.
var DistroFormats = []string{"deb", "rpm"}

const (
	summary     = "Live state for browsers, scripts and services"
	description = "Watchtide puts live state from PostgreSQL, etcd, Consul, Kubernetes, NATS or\nfiles in front of browsers, scripts and services."
)

// descriptions are by format: in a .deb, the first line is the summary.
var descriptions = map[string]string{"deb": summary + "\n" + description, "rpm": description}

// copyright names the licence as Debian wants it. The text of this licence is on every system.
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Watchtide
Source: https://github.com/watchtide/watchtide
Comment: The licences of everything that is compiled into the program are in
 /usr/share/doc/watchtide/` + licenses.FileName + `

Files: *
Copyright: the Watchtide authors
License: Apache-2.0
 The text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
`

// DistroPackage is a package for one architecture.
type DistroPackage struct {
	Version    string
	Maintainer string // a name and a mail address
	Arch       string // as the go command names it
	Time       time.Time
	Contents   Contents
	Program    []byte
}

// Make returns a package in a format, and the name of its file.
func (p DistroPackage) Make(format string) (name string, data []byte, err error) {
	folder, err := os.MkdirTemp("", "package")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(folder)
	entries, err := p.files(folder, format)
	if err != nil {
		return "", nil, err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "watchtide", Arch: p.Arch, Version: p.Version, Release: "1",
		Section: "net", Priority: "optional", License: "Apache-2.0",
		Maintainer:  p.Maintainer,
		Homepage:    "https://github.com/watchtide/watchtide",
		Description: descriptions[format],
		MTime:       p.Time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: entries,
			// By default it is the name of this machine.
			RPM: nfpm.RPM{BuildHost: "localhost", Packager: p.Maintainer, Summary: summary},
		},
	})
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", nil, err
	}
	name = packager.ConventionalFileName(info)
	var out bytes.Buffer
	err = packager.Package(info, &out)
	return name, out.Bytes(), err
}

// files writes what the package contains into a folder, since nfpm reads files.
func (p DistroPackage) files(folder, format string) (files.Contents, error) {
	license := p.Contents.License
	if format == "deb" {
		license = []byte(copyright)
	}
	all := []File{
		{Name: "/usr/bin/watchtide", Mode: 0o755, Data: p.Program},
		{Name: "/usr/lib/systemd/system/watchtide.service", Mode: 0o644, Data: p.Contents.Unit},
		{Name: "/usr/share/bash-completion/completions/watchtide", Mode: 0o644, Data: p.Contents.Bash},
		{Name: zshFolder[format] + "/_watchtide", Mode: 0o644, Data: p.Contents.Zsh},
		{Name: "/usr/share/fish/vendor_completions.d/watchtide.fish", Mode: 0o644, Data: p.Contents.Fish},
		{Name: licenseFile[format], Mode: 0o644, Data: license},
		{Name: path.Dir(licenseFile[format]) + "/" + licenses.FileName, Mode: 0o644, Data: p.Contents.Others},
	}
	for _, page := range p.Contents.Pages {
		packed, err := Gzip(page.Data)
		if err != nil {
			return nil, err
		}
		all = append(all, File{Name: "/usr/share/man/man1/" + page.Name + ".gz", Mode: 0o644, Data: packed})
	}
	entries := files.Contents{{Destination: "/etc/watchtide", Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: p.Time}}}
	for i, f := range all {
		source := filepath.Join(folder, strconv.Itoa(i))
		if err := os.WriteFile(source, f.Data, 0o600); err != nil {
			return nil, err
		}
		entries = append(entries, &files.Content{
			Source: source, Destination: f.Name,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: os.FileMode(f.Mode), MTime: p.Time},
		})
	}
	return entries, nil
}

// Where the distributions of a format look.
var (
	zshFolder   = map[string]string{"deb": "/usr/share/zsh/vendor-completions", "rpm": "/usr/share/zsh/site-functions"}
	licenseFile = map[string]string{"deb": "/usr/share/doc/watchtide/copyright", "rpm": "/usr/share/licenses/watchtide/LICENSE"}
)
