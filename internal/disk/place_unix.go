//go:build unix

package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
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

// lockToRead locks a file as its database does to read it. Close it to unlock it.
func lockToRead(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, err
}

// CheckFolder refuses a folder in which this process may not make files.
func CheckFolder(folder string) error {
	err := unix.Access(folder, unix.W_OK|unix.X_OK)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return err
	}
	return fmt.Errorf("user %d may not make files in %s (%w): chown %d %s", os.Geteuid(), folder, err, os.Geteuid(), folder)
}

// checkPlace makes the folder if it does not exist, and refuses a file that others can read or that
// is not this user's.
func checkPlace(c Config) error {
	folder := filepath.Dir(c.Path)
	if info, err := os.Stat(filepath.Dir(folder)); err == nil && info.IsDir() && !c.MustExist {
		if err := makeFolder(folder); err != nil {
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
		if err := checkFile(path, !c.MustExist); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(c.Path); err != nil && c.MustExist {
		return err
	}
	return nil
}

// checkFile refuses a file that others can use. If it may, it takes the rights of the group away.
func checkFile(path string, mayChange bool) error {
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
	case mode.Perm() != 0o600 && mayChange: // Kubernetes gives the group of a volume its rights
		return os.Chmod(path, 0o600)
	}
	return nil
}
