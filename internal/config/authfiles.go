package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"strings"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/jwt"
)

// Key is a key, read from a file.
type Key struct {
	access.SealKey `yaml:"-"`
}

// ReadFile reads the file. It is an error if other users can read it.
func (k *Key) ReadFile(_ string, data []byte, mode fs.FileMode) (err error) {
	if err := closed(mode, 0o007, "others can read the key"); err != nil {
		return err
	}
	if k.SealKey, err = access.ParseSealKey(data); err != nil {
		return fmt.Errorf("the file holds no key: %w", err)
	}
	return nil
}

// ClientSecret is a password, read from a file. It is hidden when it is printed or logged.
type ClientSecret string

// ReadFile reads the file. It is an error if other users can read it.
func (s *ClientSecret) ReadFile(_ string, data []byte, mode fs.FileMode) error {
	if err := closed(mode, 0o007, "others can read the secret"); err != nil {
		return err
	}
	line := strings.TrimRight(string(data), "\r\n")
	if line == "" || strings.ContainsAny(line, "\r\n\x00") {
		return errors.New("the file holds no secret: want one line")
	}
	*s = ClientSecret(line)
	return nil
}

// Format writes a placeholder, for every verb.
func (s ClientSecret) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[hidden]") }

// LogValue returns a placeholder.
func (s ClientSecret) LogValue() slog.Value { return slog.StringValue("[hidden]") }

// MarshalText returns a placeholder, so that JSON does not have the secret either.
func (s ClientSecret) MarshalText() ([]byte, error) { return []byte("[hidden]"), nil }

// Tokens is the content of a file of static tokens.
type Tokens struct {
	*access.TokenTable `yaml:"-"`
}

// ReadFile reads the file. It is an error if other users can write it.
func (t *Tokens) ReadFile(name string, data []byte, mode fs.FileMode) (err error) {
	if err := closed(mode, 0o002, "others can add tokens to the file"); err != nil {
		return err
	}
	if t.TokenTable, err = access.ParseTokens(data); err != nil {
		return fmt.Errorf("%s:%w", name, err)
	}
	return nil
}

// KeySet is the content of a file with a key set (RFC 7517).
type KeySet []byte

// ReadFile reads the file.
func (s *KeySet) ReadFile(_ string, data []byte, _ fs.FileMode) error {
	*s = data
	return jwt.CheckKeys(data)
}

// closed returns an error if a file has one of the permissions. It checks nothing on Windows.
func closed(mode, permissions fs.FileMode, problem string) error {
	if runtime.GOOS == "windows" || mode&permissions == 0 {
		return nil
	}
	return errors.New(problem + fmt.Sprintf(": the mode of the file is %#o; want no permissions for others, such as 0440", mode.Perm()))
}
