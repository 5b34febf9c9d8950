package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/watchtide/watchtide/release/internal/licenses"
	"github.com/watchtide/watchtide/release/internal/pack"
)

// product is a file of a release.
type product struct {
	name string
	data []byte
}

func (p product) sum() string {
	sum := sha256.Sum256(p.data)
	return hex.EncodeToString(sum[:])
}

// maker makes the products of one source.
type maker struct {
	source     licenses.Source
	maintainer string
	contents   pack.Contents
	lock       []byte // of the dashboard's packages
	images     []pack.ImageProgram
	made       []product
}

func (m *maker) add(name string, data []byte, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	m.made = append(m.made, product{name, data})
	return nil
}

// makeAll returns all products for these targets.
func makeAll(ctx context.Context, from licenses.Source, maintainer string, targets []licenses.Target) ([]product, error) {
	folder, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	m := &maker{source: from, maintainer: maintainer}
	if m.lock, err = os.ReadFile(filepath.Join(from.Folder, "web/dashboard/package-lock.json")); err != nil {
		return nil, err
	}
	here := filepath.Join(folder, "here")
	if err := from.Compile(ctx, licenses.Target{OS: runtime.GOOS, Arch: runtime.GOARCH}, here); err != nil {
		return nil, err
	}
	if m.contents, err = pack.ContentsOf(ctx, from.Folder, here, from.Time); err != nil {
		return nil, err
	}
	for _, t := range targets {
		if err := m.compile(ctx, t, filepath.Join(folder, "program")); err != nil {
			return nil, err
		}
	}
	if err := m.client(ctx); err != nil {
		return nil, err
	}
	return m.made, m.shared()
}

// compile makes a program, and everything that has it.
func (m *maker) compile(ctx context.Context, t licenses.Target, file string) error {
	if err := m.source.Compile(ctx, t, file); err != nil {
		return err
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if m.contents.Others, err = licenses.Text(ctx, m.source, t, program); err != nil {
		return fmt.Errorf("licences for %v: %w", t, err)
	}
	if t.OS == "linux" {
		m.images = append(m.images, pack.ImageProgram{Arch: t.Arch, Data: program, Licenses: m.contents.Others})
	}
	return m.platform(t, program)
}

// client makes the package of the TypeScript client.
func (m *maker) client(ctx context.Context) error {
	p := pack.NPMPackage{
		Folder: filepath.Join(m.source.Folder, "web/client"), License: m.contents.License,
		Version: m.source.Version, Time: m.source.Time,
	}
	name, data, err := p.Make(ctx)
	return m.add(name, data, err)
}

// platform makes what there is for one target.
func (m *maker) platform(t licenses.Target, program []byte) error {
	base := fmt.Sprintf("watchtide_%s_%s_%s", m.source.Version, t.OS, t.Arch)
	files := m.contents.Archive(base, t.OS == "windows", program)
	bundle, suffix := pack.TarGzip, ".tar.gz"
	if t.OS == "windows" {
		bundle, suffix = pack.Zip, ".zip"
	}
	data, err := bundle(files, m.source.Time)
	if err := m.add(base+suffix, data, err); err != nil {
		return err
	}
	data, err = pack.ProgramBOM{Version: m.source.Version, Time: m.source.Time, Data: program, Lock: m.lock}.JSON()
	if err := m.add(base+".cdx.json", data, err); err != nil || t.OS != "linux" {
		return err
	}
	p := pack.DistroPackage{Version: m.source.Version, Maintainer: m.maintainer, Arch: t.Arch, Time: m.source.Time, Contents: m.contents, Program: program}
	for _, format := range pack.DistroFormats {
		name, data, err := p.Make(format)
		if err := m.add(name, data, err); err != nil {
			return err
		}
	}
	return nil
}

// shared makes what there is once: the chart, and an image for all architectures of Linux.
func (m *maker) shared() error {
	chart, err := pack.Chart(os.DirFS(filepath.Join(m.source.Folder, "deploy/helm/watchtide")), m.source.Version, m.source.Time)
	if err := m.add("watchtide-"+m.source.Version+".tgz", chart, err); err != nil || len(m.images) == 0 {
		return err
	}
	i := pack.Image{Version: m.source.Version, Commit: m.source.Commit, Time: m.source.Time, License: m.contents.License}
	data, err := i.Archive(m.images)
	return m.add("watchtide_"+m.source.Version+"_oci.tar", data, err)
}

// compareWithAnother makes all products again, from a copy of the source in another folder.
func compareWithAnother(ctx context.Context, from licenses.Source, maintainer string, targets []licenses.Target, made []product, fresh bool) error {
	folder, err := os.MkdirTemp("", "another")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	copied, err := from.Copy(ctx, folder, fresh)
	if err != nil {
		return err
	}
	again, err := makeAll(ctx, copied, maintainer, targets)
	if err != nil {
		return err
	}
	return compare(made, again)
}

func compare(made, again []product) error {
	if len(made) != len(again) {
		return fmt.Errorf("made %d files, and %d the second time", len(made), len(again))
	}
	for i, p := range made {
		if p.name != again[i].name || !bytes.Equal(p.data, again[i].data) {
			return fmt.Errorf("%s is not the same the second time: %s, then %s %s", p.name, p.sum(), again[i].name, again[i].sum())
		}
	}
	return nil
}
