package connect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/watchtide/watchtide/client"
)

// ContextsVariable is the environment variable that names another file than the default one.
const ContextsVariable = "WATCHTIDE_CONTEXTS"

// Context is how to reach one gateway. It has the names of files with credentials, and of
// credentials only what stands in its headers.
type Context struct {
	Server    string            `yaml:"server"`
	TokenFile string            `yaml:"token_file,omitempty"`
	CAFile    string            `yaml:"ca_file,omitempty"`
	CertFile  string            `yaml:"cert_file,omitempty"`
	KeyFile   string            `yaml:"key_file,omitempty"`
	Headers   map[string]string `yaml:"headers,omitempty"`
}

// With returns the context with what over has instead.
func (c Context) With(over Context) Context {
	headers := maps.Clone(c.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	maps.Copy(headers, over.Headers)
	return Context{
		Server: cmp.Or(over.Server, c.Server), TokenFile: cmp.Or(over.TokenFile, c.TokenFile), CAFile: cmp.Or(over.CAFile, c.CAFile),
		CertFile: cmp.Or(over.CertFile, c.CertFile), KeyFile: cmp.Or(over.KeyFile, c.KeyFile), Headers: headers,
	}
}

// HTTPHeader returns the headers for requests.
func (c Context) HTTPHeader() http.Header {
	out := http.Header{}
	for name, value := range c.Headers {
		out.Set(name, value)
	}
	return out
}

// check finds what makes a context useless.
func (c Context) check() error {
	server, err := client.New(c.Server, client.Options{})
	if err != nil {
		return err
	}
	server.Close()
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("want cert_file and key_file together, or neither")
	}
	for name, value := range c.Headers {
		if err := checkHeader(name, value); err != nil {
			return err
		}
	}
	return nil
}

// ContextsFile is the content of the file.
type ContextsFile struct {
	// Current is the name of the context that is used unless another server is named; "": none.
	Current  string             `yaml:"current,omitempty"`
	Contexts map[string]Context `yaml:"contexts"`
}

// Names returns the names of the contexts, in order.
func (f ContextsFile) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// Get returns a context.
func (f ContextsFile) Get(name string) (Context, error) {
	c, ok := f.Contexts[name]
	if !ok {
		return Context{}, fmt.Errorf("there is no context %q: %s", name, f.known())
	}
	if err := c.check(); err != nil {
		return Context{}, fmt.Errorf("context %s: %w", name, err)
	}
	return c, nil
}

func (f ContextsFile) known() string {
	if len(f.Contexts) == 0 {
		return "watchtide context set NAME --server URL makes one"
	}
	return "want one of " + strings.Join(f.Names(), ", ")
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// checkName checks the name of a new context.
func checkName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("context %q: want a name of 1 to 64 letters, digits, ., _ and -", name)
	}
	return nil
}

// ContextsPath returns the name of the file.
func ContextsPath() (string, error) {
	if named := os.Getenv(ContextsVariable); named != "" {
		return named, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("contexts: %w; %s names their file", err, ContextsVariable)
	}
	return filepath.Join(dir, "watchtide", "contexts.yaml"), nil
}

// LoadContexts reads the file. One that does not exist, or can have no name since the user has no home,
// has no contexts.
func LoadContexts() (ContextsFile, error) {
	f := ContextsFile{Contexts: map[string]Context{}}
	path, err := ContextsPath()
	if err != nil {
		return f, nil
	}
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("contexts: %w", err)
	}
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		return f, fmt.Errorf("contexts: %s: %s", path, yaml.FormatError(err, false, false))
	}
	if f.Contexts == nil {
		f.Contexts = map[string]Context{}
	}
	return f, nil
}

// maxBytes is the maximum size of the file, which has some hundred bytes for each context.
const maxBytes = 1 << 20

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil && len(text) > maxBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxBytes)
	}
	return text, err
}

// save replaces the file as a whole. Only its owner can read it: a header may be a secret.
func (f ContextsFile) save() error {
	path, err := ContextsPath()
	if err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link stays one
	}
	text, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".contexts-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(text)
	if err := cmp.Or(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
