package changes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

var errHomeless = errors.New("there is no home directory")

// Folder returns the folder of the program in the user's directory for states, and makes it.
func Folder() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errHomeless
		}
		dir = filepath.Join(home, ".local", "state")
	}
	dir = filepath.Join(dir, "watchtide")
	return dir, os.MkdirAll(dir, 0o700)
}

// DefaultName returns the name of the state file of a command: in the user's directory for
// states, another one for each server, subject and command. The directory is made.
func DefaultName(server string, s Subject, line string) (string, error) {
	dir, err := Folder()
	switch {
	case errors.Is(err, errHomeless):
		return "", fmt.Errorf("%w for the state file: want --state FILE", err)
	case err != nil:
		return "", err
	}
	text, err := json.Marshal([]any{server, s, line})
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(text)
	return filepath.Join(dir, "exec-"+hex.EncodeToString(hash[:8])+".state"), nil
}
