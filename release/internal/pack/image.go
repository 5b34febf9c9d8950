package pack

import (
	"bytes"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/watchtide/watchtide/release/internal/licenses"
)

// Image is what its images for all architectures have in common.
type Image struct {
	Version string
	Commit  string
	Time    time.Time
	License []byte
}

// ImageProgram is a program for Linux.
type ImageProgram struct {
	Arch     string // as the go command names it
	Data     []byte
	Licenses []byte // of what it is made from
}

// Archive returns a tar archive of an OCI image layout with an image for each of these programs.
func (i Image) Archive(programs []ImageProgram) ([]byte, error) {
	index := v1.ImageIndex(empty.Index)
	for _, p := range programs {
		platform := v1.Platform{OS: "linux", Architecture: p.Arch}
		image, err := i.image(platform, p)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	folder, err := os.MkdirTemp("", "image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return nil, err
	}
	if err := written.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": ImageTag(i.Version)})); err != nil {
		return nil, err
	}
	files, err := Folder(folder)
	if err != nil {
		return nil, err
	}
	return Tar(files, i.Time)
}

// ImageTag returns the tag of a version, as the Helm chart names it: a tag has no +.
func ImageTag(version string) string { return strings.ReplaceAll(version, "+", "-") }

func (i Image) image(platform v1.Platform, p ImageProgram) (v1.Image, error) {
	packed, err := TarGzip([]File{
		{Name: "watchtide", Mode: 0o755, Data: p.Data},
		{Name: "LICENSE", Mode: 0o644, Data: i.License},
		{Name: licenses.FileName, Mode: 0o644, Data: p.Licenses},
	}, i.Time)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: i.Time}, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = platform.OS, platform.Architecture, v1.Time{Time: i.Time}
	config.Config = i.process()
	return mutate.ConfigFile(image, config)
}

// process is what the Dockerfile of the repository says.
func (i Image) process() v1.Config {
	return v1.Config{
		User:         "65532:65532",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Entrypoint:   []string{"/watchtide"},
		Cmd:          []string{"serve", "--http", "0.0.0.0:8080", "--auth", "none"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "watchtide",
			"org.opencontainers.image.version":  i.Version,
			"org.opencontainers.image.revision": i.Commit,
			"org.opencontainers.image.source":   "https://github.com/watchtide/watchtide",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
}
