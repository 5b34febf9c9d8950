//go:build unix

package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	noFollow       = syscall.O_NOFOLLOW
	canSyncFolders = true
)

var errLocked = errors.New("locked")

func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// checkPlace makes the folder if it does not exist, and refuses a file that others can read or that
// is not this user's.
func checkPlace(c Config) error {
	folder := filepath.Dir(c.Path)
	if info, err := os.Stat(filepath.Dir(folder)); err == nil && info.IsDir() && !c.MustExist {
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return fmt.Errorf("%s: there is no folder %s: make it, for the user that runs the gateway", c.Path, folder)
	case !info.IsDir():
		return fmt.Errorf("%s: %s is no folder", c.Path, folder)
	case info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0:
		return fmt.Errorf("%s: everybody may replace files in %s: chmod o-w %s", c.Path, folder, folder)
	}
	for _, path := range []string{c.Path, c.Path + ".state"} {
		if err := checkFile(path); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(c.Path); err != nil && c.MustExist {
		return err
	}
	return nil
}

func checkFile(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	owner := os.Geteuid()
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = int(s.Uid)
	}
	switch mode := info.Mode(); {
	case mode&os.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link: want the path of the file itself", path)
	case !mode.IsRegular():
		return fmt.Errorf("%s is no file", path)
	case owner != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, this process is of user %d: chown %d %s", path, owner, os.Geteuid(), os.Geteuid(), path)
	case mode.Perm()&0o007 != 0:
		return fmt.Errorf("%s has mode %04o, so others can use it: chmod 600 %s", path, mode.Perm(), path)
	case mode.Perm() != 0o600: // Kubernetes gives the group of a volume its rights
		return os.Chmod(path, 0o600)
	}
	return nil
}
