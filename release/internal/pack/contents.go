package pack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/watchtide/watchtide/release/internal/licenses"
)

// Contents is what is installed on a machine.
type Contents struct {
	License []byte
	Others  []byte // licences of what the program of a platform is made from
	Unit    []byte // of systemd
	Pages   []File // of the manual
	Bash    []byte // completions
	Zsh     []byte
	Fish    []byte
}

// ContentsOf returns the contents of a release except Others, from the files of its source, and from a program that runs
// on this machine. The pages of the manual have the date of the source.
func ContentsOf(ctx context.Context, folder, program string, of time.Time) (c Contents, err error) {
	if c.License, err = os.ReadFile(filepath.Join(folder, "LICENSE")); err != nil {
		return Contents{}, err
	}
	if c.Unit, err = os.ReadFile(filepath.Join(folder, "deploy/systemd/watchtide.service")); err != nil {
		return Contents{}, err
	}
	if c.Pages, err = pages(ctx, program, of); err != nil {
		return Contents{}, err
	}
	for shell, script := range map[string]*[]byte{"bash": &c.Bash, "zsh": &c.Zsh, "fish": &c.Fish} {
		if *script, err = exec.CommandContext(ctx, program, "completion", shell).Output(); err != nil {
			return Contents{}, fmt.Errorf("completion of %s: %w", shell, err)
		}
	}
	return c, nil
}

func pages(ctx context.Context, program string, of time.Time) ([]File, error) {
	folder, err := os.MkdirTemp("", "manual")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	manual := exec.CommandContext(ctx, program, "manual", folder)
	manual.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", of.Unix()))
	if out, err := manual.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("manual pages: %w\n%s", err, out)
	}
	return Folder(folder)
}

// Archive returns the files of an archive for a system, below a folder.
func (c Contents) Archive(folder string, windows bool, program []byte) []File {
	name := "watchtide"
	if windows {
		name += ".exe"
	}
	files := []File{
		{Name: folder + "/" + name, Mode: 0o755, Data: program},
		{Name: folder + "/LICENSE", Mode: 0o644, Data: c.License},
		{Name: folder + "/" + licenses.FileName, Mode: 0o644, Data: c.Others},
	}
	if windows {
		return files
	}
	files = append(files,
		File{Name: folder + "/completions/watchtide.bash", Mode: 0o644, Data: c.Bash},
		File{Name: folder + "/completions/_watchtide", Mode: 0o644, Data: c.Zsh},
		File{Name: folder + "/completions/watchtide.fish", Mode: 0o644, Data: c.Fish})
	for _, p := range c.Pages {
		files = append(files, File{Name: folder + "/man/man1/" + p.Name, Mode: 0o644, Data: p.Data})
	}
	return files
}
