package changes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// DefaultName returns the name of the state file of a command: in the user's directory for
// states, another one for each server, subject and command. The directory is made.
func DefaultName(server string, s Subject, line string) (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("there is no home directory for the state file: want --state FILE")
		}
		dir = filepath.Join(home, ".local", "state")
	}
	dir = filepath.Join(dir, "watchtide")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	text, err := json.Marshal([]any{server, s, line})
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(text)
	return filepath.Join(dir, "exec-"+hex.EncodeToString(hash[:8])+".state"), nil
}
