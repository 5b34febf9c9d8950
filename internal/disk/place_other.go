//go:build !unix

package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	noFollow       = 0
	canSyncFolders = false
)

var errLocked = errors.New("locked")

// lock does nothing: the database has a lock of its own.
func lock(*os.File) error { return nil }

// lockToRead does nothing, as lock.
func lockToRead(path string) (io.Closer, error) { return os.Open(path) }

// CheckFolder refuses a folder that does not exist. Rights are not looked at.
func CheckFolder(folder string) error {
	_, err := os.Stat(folder)
	return err
}

// checkPlace makes the folder if it does not exist. Modes are not looked at.
func checkPlace(c Config) error {
	if !c.MustExist {
		if err := makeFolder(filepath.Dir(c.Path)); err != nil {
			return err
		}
	}
	info, err := os.Lstat(c.Path)
	switch {
	case err != nil && (c.MustExist || !errors.Is(err, os.ErrNotExist)):
		return err
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file", c.Path)
	}
	return nil
}

// birthOf returns "": files have no number here.
func birthOf(string) string { return "" }
