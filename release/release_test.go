//go:build servers

package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/sassoftware/go-rpmutils"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/watchtide/watchtide/release/internal/licenses"
)

// release is what the command has made for this machine.
type release struct {
	folder string
	from   licenses.Source
}

// TestRelease makes a release for this machine, twice, and installs or unpacks each of its files.
func TestRelease(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("packages are for Linux")
	}
	r := makeRelease(t)
	t.Run("archive", r.testArchive)
	t.Run("deb", r.testDeb)
	t.Run("rpm", r.testRPM)
	t.Run("image", r.testImage)
	t.Run("bill of materials", r.testBOM)
	t.Run("chart", r.testChart)
	t.Run("npm package", r.testNPM)
}

const maintainer = "Ann Other <ann@example.org>"

// makeRelease runs the command without the race detector, which slows down compression.
func makeRelease(t *testing.T) release {
	t.Helper()
	ctx := t.Context()
	from, err := licenses.ReadSource(ctx, "..")
	if err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(t.TempDir(), "release")
	mustRun(t, "go", "build", "-o", command, ".")
	r := release{folder: filepath.Join(t.TempDir(), "out"), from: from}
	printed := mustRun(t, command, "-targets", "linux/"+runtime.GOARCH, "-maintainer", maintainer, "-check", "-cached", "-out", r.folder)
	if !strings.Contains(printed, "the same bytes") {
		t.Errorf("the command printed %q: want that both are the same", printed)
	}
	r.testSums(t, printed)
	return r
}

// testSums: every file is printed with its size and its hash, and SHA256SUMS has it.
func (r release) testSums(t *testing.T, printed string) {
	sums := string(r.read(t, "SHA256SUMS"))
	files, err := os.ReadDir(r.folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 8 {
		t.Errorf("%d files, want archive, bill of materials, deb, rpm, chart, image, npm package and check sums: %v", len(files), files)
	}
	for _, f := range files {
		if f.Name() == "SHA256SUMS" {
			continue
		}
		data := r.read(t, f.Name())
		line := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), f.Name())
		if !strings.Contains(sums, line) {
			t.Errorf("SHA256SUMS lacks %q", line)
		}
		if !strings.Contains(printed, fmt.Sprintf("%11d  %s", len(data), line)) {
			t.Errorf("not printed: %d, %q", len(data), line)
		}
	}
}

func (r release) read(t *testing.T, pattern string) []byte {
	t.Helper()
	data, err := os.ReadFile(r.file(t, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (r release) file(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.folder, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v, want one file", pattern, found, err)
	}
	return found[0]
}

// testNPM: the package passes the client's own check of packages, and has the release's version.
func (r release) testNPM(t *testing.T) {
	file := r.file(t, "watchtide-client-*.tgz")
	mustRun(t, "node", "../web/client/scripts/pack.js", file)
	version, _, _ := strings.Cut(r.from.Version, "+")
	if got := mustRun(t, "tar", "-xzOf", file, "package/package.json"); !strings.Contains(got, `"version": "`+version+`"`) || !strings.Contains(got, `"provenance": true`) {
		t.Errorf("package.json: %s, want version %s", got, version)
	}
}

// checkProgram runs a program, which is static and says what it was made from.
func (r release) checkProgram(t *testing.T, file string) {
	t.Helper()
	out := mustRun(t, file, "version")
	if want := fmt.Sprintf("watchtide gateway %s (commit %s, ", r.from.Version, r.from.Commit); !strings.HasPrefix(out, want) {
		t.Errorf("version: %q, want %q…", out, want)
	}
}

func (r release) testArchive(t *testing.T) {
	folder := t.TempDir()
	packed := r.read(t, "*.tar.gz")
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	untar(t, unpacked, folder)
	top := filepath.Join(folder, strings.TrimSuffix(filepath.Base(r.file(t, "*.tar.gz")), ".tar.gz"))
	r.checkProgram(t, filepath.Join(top, "watchtide"))
	checkLicenses(t, filepath.Join(top, "watchtide"), filepath.Join(top, licenses.FileName))
	for _, name := range []string{"LICENSE", licenses.FileName, "man/man1/watchtide.1", "man/man1/watchtide-serve.1", "completions/watchtide.bash", "completions/_watchtide", "completions/watchtide.fish"} {
		wantFile(t, filepath.Join(top, name))
	}
}

// installed is what both kinds of packages install.
var installed = []string{
	"usr/lib/systemd/system/watchtide.service",
	"usr/share/bash-completion/completions/watchtide",
	"usr/share/fish/vendor_completions.d/watchtide.fish",
	"usr/share/man/man1/watchtide.1.gz",
	"usr/share/man/man1/watchtide-serve.1.gz",
}

func (r release) checkInstalled(t *testing.T, root string, more ...string) {
	t.Helper()
	r.checkProgram(t, filepath.Join(root, "usr/bin/watchtide"))
	for _, name := range slices.Concat(installed, more) {
		wantFile(t, filepath.Join(root, name))
	}
	if info, err := os.Stat(filepath.Join(root, "etc/watchtide")); err != nil || !info.IsDir() || info.Mode().Perm() != 0o755 {
		t.Errorf("folder of the configuration: %v, %v", info, err)
	}
}

func (r release) testDeb(t *testing.T) {
	for _, program := range []string{"dpkg", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing: apt-get install dpkg", program)
		}
	}
	file, root := r.file(t, "*.deb"), t.TempDir()
	mustRun(t, "dpkg", "-x", file, root)
	r.checkInstalled(t, root, "usr/share/zsh/vendor-completions/_watchtide", "usr/share/doc/watchtide/copyright")
	checkLicenses(t, filepath.Join(root, "usr/bin/watchtide"), filepath.Join(root, "usr/share/doc/watchtide", licenses.FileName))
	info := mustRun(t, "dpkg-deb", "-I", file)
	version := distroVersion(r.from.Version) + "-1"
	for _, want := range []string{"Package: watchtide\n", "Version: " + version + "\n", "Architecture: " + runtime.GOARCH + "\n", "Section: net\n", "Priority: optional\n", "Maintainer: " + maintainer + "\n", "Installed-Size: ", "Homepage: https://github.com/watchtide/watchtide\n", "Description: Live state"} {
		if !strings.Contains(info, " "+want) {
			t.Errorf("dpkg-deb -I lacks %q:\n%s", want, info)
		}
	}
	mustRun(t, "dpkg", "--validate-version", version)
	for line := range strings.Lines(mustRun(t, "dpkg-deb", "-c", file)) {
		if !strings.Contains(line, " root/root ") && !strings.Contains(line, " 0/0 ") {
			t.Errorf("not a file of root: %s", line)
		}
	}
}

// distroVersion returns a version as packages have it: before a release comes ~.
func distroVersion(version string) string { return strings.Replace(version, "-", "~", 1) }

func (r release) testRPM(t *testing.T) {
	rpm, err := rpmutils.ReadRpm(bytes.NewReader(r.read(t, "*.rpm")))
	if err != nil {
		t.Fatal(err)
	}
	name, err := rpm.Header.GetNEVRA()
	if err != nil {
		t.Fatal(err)
	}
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if name.Name != "watchtide" || name.Version != distroVersion(r.from.Version) || name.Release != "1" || name.Arch != arch {
		t.Errorf("package %+v", name)
	}
	if host, err := rpm.Header.GetString(rpmutils.BUILDHOST); err != nil || host != "localhost" {
		t.Errorf("built on %q, %v: want nothing of this machine", host, err)
	}
	root := t.TempDir()
	if err := rpm.ExpandPayload(root); err != nil {
		t.Fatal(err)
	}
	files, err := rpm.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.UserName() != "root" || f.GroupName() != "root" {
			t.Errorf("%s belongs to %s, %s: want root", f.Name(), f.UserName(), f.GroupName())
		}
		// The library leaves the modes of files to whoever unpacks them.
		if err := os.Chmod(filepath.Join(root, f.Name()), os.FileMode(f.Mode()).Perm()); err != nil {
			t.Error(err)
		}
	}
	r.checkInstalled(t, root, "usr/share/zsh/site-functions/_watchtide", "usr/share/licenses/watchtide/LICENSE")
	checkLicenses(t, filepath.Join(root, "usr/bin/watchtide"), filepath.Join(root, "usr/share/licenses/watchtide", licenses.FileName))
	if packager, err := rpm.Header.GetString(rpmutils.PACKAGER); err != nil || packager != maintainer {
		t.Errorf("packager %q, %v, want %q", packager, err, maintainer)
	}
}

// testImage reads the layout, and runs the process of the image in the files of its one layer.
func (r release) testImage(t *testing.T) {
	folder, root := t.TempDir(), t.TempDir()
	untar(t, bytes.NewReader(r.read(t, "*_oci.tar")), folder)
	image := onlyImage(t, folder)
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers %v, %v, want one", layers, err)
	}
	files, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	untar(t, files, root)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH || !config.Created.Time.Equal(r.from.Time) {
		t.Errorf("image for %s/%s of %v", config.OS, config.Architecture, config.Created)
	}
	wantFile(t, filepath.Join(root, "LICENSE"))
	program := filepath.Join(root, config.Config.Entrypoint[0])
	r.checkProgram(t, program)
	checkLicenses(t, program, filepath.Join(root, licenses.FileName))
	checkAuthorities(t, root, config.Config.Entrypoint[0])
	// The port of the image may be taken on this machine.
	args := slices.Clone(config.Config.Cmd)
	args[slices.Index(args, "0.0.0.0:8080")] = "127.0.0.1:0"
	serve(t, program, args)
}

// onlyImage returns the image of a layout, after all hashes in it were checked.
func onlyImage(t *testing.T, folder string) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("index %+v, %v, want one entry", manifest, err)
	}
	tag := manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"]
	if !regexp.MustCompile(`^\w[\w.-]{0,127}$`).MatchString(tag) {
		t.Errorf("tag %q: no registry accepts it", tag)
	}
	platforms, err := index.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := platforms.IndexManifest()
	if err != nil || len(images.Manifests) != 1 {
		t.Fatalf("platforms %+v, %v, want one", images, err)
	}
	image, err := platforms.Image(images.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

var listening = regexp.MustCompile(`"http":"(127\.0\.0\.1:\d+)"`)

// serve starts a program in an empty environment, asks it how it is, and ends it.
func serve(t *testing.T, program string, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Env, c.Dir = []string{}, filepath.Dir(program)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	address := ""
	log := bufio.NewScanner(stderr)
	for address == "" && log.Scan() {
		if m := listening.FindStringSubmatch(log.Text()); m != nil {
			address = m[1]
		}
	}
	if address == "" {
		t.Fatalf("it does not listen: %v", log.Err())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("healthz: %s", response.Status)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for log.Scan() { // until it ends
	}
	if err := c.Wait(); err != nil {
		t.Errorf("after SIGINT: %v", err)
	}
}

// checkLicenses: there is a licence of every module that the go command has recorded in a program,
// of Go, and of every package in the dashboard.
func checkLicenses(t *testing.T, program, file string) {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"the Go standard library, " + info.GoVersion + ": LICENSE", "## react - ", "## uplot - "}
	for _, m := range licenses.Modules(info) {
		want = append(want, m.Path+" "+m.Version+": ")
	}
	for _, heading := range want {
		if !strings.Contains(string(text), "\n"+heading) {
			t.Errorf("%s: no licence of %s", file, heading)
		}
	}
}

// testBOM: it names every module that the go command has recorded in the program.
func (r release) testBOM(t *testing.T) {
	root := t.TempDir()
	packed, err := gzip.NewReader(bytes.NewReader(r.read(t, "*.tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	untar(t, packed, root)
	info, err := buildinfo.ReadFile(filepath.Join(root, strings.TrimSuffix(filepath.Base(r.file(t, "*.tar.gz")), ".tar.gz"), "watchtide"))
	if err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(r.read(t, "*.cdx.json")), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	urls := map[string]bool{}
	for _, c := range *bom.Components {
		urls[c.PackageURL] = true
	}
	modules := licenses.Modules(info)
	if len(modules) < 20 || len(urls) != len(modules)+1+7 {
		t.Errorf("%d components, want %d modules, the standard library and 7 packages of npm", len(urls), len(modules))
	}
	for _, m := range modules {
		if !urls["pkg:golang/"+m.Path+"@"+m.Version] {
			t.Errorf("%s %s is missing", m.Path, m.Version)
		}
	}
	if got := bom.Metadata.Component.Version; got != r.from.Version {
		t.Errorf("version %s, want %s", got, r.from.Version)
	}
}

func (r release) testChart(t *testing.T) {
	chart, err := loader.LoadFile(r.file(t, "watchtide-[0-9]*.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if chart.Metadata.Version != r.from.Version || chart.Metadata.AppVersion != r.from.Version {
		t.Errorf("chart %s of %s, want %s", chart.Metadata.Version, chart.Metadata.AppVersion, r.from.Version)
	}
}

func mustRun(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Env = append(os.Environ(), "LC_ALL=C")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func wantFile(t *testing.T, name string) {
	t.Helper()
	if info, err := os.Stat(name); err != nil || info.Size() == 0 || info.Mode().Perm() != 0o644 {
		t.Errorf("%s: %v, %v, want a file that everybody can read", name, info, err)
	}
}

func untar(t *testing.T, from io.Reader, folder string) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, header.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, os.FileMode(header.Mode))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(file, r); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
