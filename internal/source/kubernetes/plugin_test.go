//go:build unix

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const execV1 = "client.authentication.k8s.io/v1"

// script is a plugin: a shell script that notes its runs, and answers with the content of a file.
type script struct {
	t          testing.TB
	path       string
	answer     string // a file
	runs, told string // files
}

func newScript(t testing.TB) *script {
	t.Helper()
	dir := t.TempDir()
	s := &script{t: t, path: filepath.Join(dir, "plugin"), answer: filepath.Join(dir, "answer"), runs: filepath.Join(dir, "runs"), told: filepath.Join(dir, "told")}
	s.write(s.path, fmt.Sprintf("#!/bin/sh\necho >> %q\nprintf '%%s' \"$KUBERNETES_EXEC_INFO\" > %q\nprintf '%%s' \"$REGION $*\" > %q\ncat %q\n", s.runs, s.told, s.told+".args", s.answer))
	if err := os.Chmod(s.path, 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *script) write(path, content string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) read(path string) string {
	s.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(content)
}

// issues has the plugin answer with a status from now on.
func (s *script) issues(status string) {
	s.write(s.answer, fmt.Sprintf(`{"kind":"ExecCredential","apiVersion":%q,"status":%s}`, execV1, status))
}

// issuesUntil has the plugin answer with a token that ends.
func (s *script) issuesUntil(token string, end time.Time) {
	s.issues(fmt.Sprintf(`{"token":%q,"expirationTimestamp":%q}`, token, end.Format(time.RFC3339)))
}

// ran returns how many times the plugin has run.
func (s *script) ran() int { return strings.Count(s.read(s.runs), "\n") }

func (s *script) config() *clientcmdapi.ExecConfig {
	return &clientcmdapi.ExecConfig{
		Command: s.path, Args: []string{"get", "token"}, Env: []clientcmdapi.ExecEnvVar{{Name: "REGION", Value: "north"}},
		APIVersion: execV1, InteractiveMode: clientcmdapi.NeverExecInteractiveMode, InstallHint: "apt-get install plugin",
	}
}

func (s *script) plugin() *plugin {
	s.t.Helper()
	p, err := pluginOf(&rest.Config{Host: "https://example.com", ExecProvider: s.config()})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func TestPlugin(t *testing.T) {
	s := newScript(t)
	s.issues(`{"token":"one"}`)
	c, err := s.plugin().credential(t.Context())
	if err != nil || c.token != "one" {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := s.read(s.told + ".args"); got != "north get token" {
		t.Errorf("its environment and its arguments are %q", got)
	}
	var told struct {
		APIVersion, Kind string
		Spec             struct {
			Interactive bool
			Cluster     any
		}
	}
	if err := json.Unmarshal([]byte(s.read(s.told)), &told); err != nil || told.APIVersion != execV1 || told.Kind != "ExecCredential" || told.Spec.Interactive || told.Spec.Cluster != nil {
		t.Errorf("it is told %s: %+v, %v", s.read(s.told), told, err)
	}
	if again, err := s.plugin().credential(t.Context()); again != c || err != nil || s.ran() != 1 {
		t.Errorf("for another watch: %+v, %v after %d runs, want the same credential", again, err, s.ran())
	}
}

func TestPluginIsToldTheCluster(t *testing.T) {
	s := newScript(t)
	s.issues(`{"token":"one"}`)
	exec := s.config()
	exec.ProvideClusterInfo, exec.Config = true, &runtime.Unknown{Raw: []byte(`{"audience":"here"}`), ContentType: runtime.ContentTypeJSON}
	p, err := pluginOf(&rest.Config{
		Host: "https://example.com", ExecProvider: exec,
		TLSClientConfig: rest.TLSClientConfig{CAFile: writeFile(t, "ca", "authority"), ServerName: "api"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.credential(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := s.read(s.told)
	for _, want := range []string{`"server":"https://example.com"`, `"tls-server-name":"api"`, `"certificate-authority-data":"YXV0aG9yaXR5"`, `"config":{"audience":"here"}`} {
		if !strings.Contains(told, want) {
			t.Errorf("it is told %s, want %s in it", told, want)
		}
	}
}

// TestPluginOfAKubeconfig: what is not possible is said before anything is connected.
func TestPluginOfAKubeconfig(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rest.Config)
		want   string // "": there is no plugin
	}{
		"a terminal":      {func(c *rest.Config) { c.ExecProvider.InteractiveMode = clientcmdapi.AlwaysExecInteractiveMode }, "interactiveMode Always, and there is no terminal: want a plugin"},
		"another version": {func(c *rest.Config) { c.ExecProvider.APIVersion = "client.authentication.k8s.io/v1alpha1" }, "want client.authentication.k8s.io/v1"},
		"no authority": {func(c *rest.Config) {
			c.ExecProvider.ProvideClusterInfo, c.CAFile = true, "/none/ca"
		}, "/none/ca"},
		"a token as well":       {func(c *rest.Config) { c.BearerToken = "t" }, ""},
		"a certificate as well": {func(c *rest.Config) { c.CertFile = "f" }, ""},
		"no plugin":             {func(c *rest.Config) { c.ExecProvider = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := &rest.Config{ExecProvider: newScript(t).config()}
			c.change(config)
			p, err := pluginOf(config)
			switch {
			case p != nil:
				t.Error("there is a plugin")
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), config.ExecProvider.Command)):
				t.Errorf("error %v, want %q and the name of the plugin in it", err, c.want)
			}
		})
	}
}

func TestPluginThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*script, *clientcmdapi.ExecConfig)
		want   string
	}{
		"not installed": {func(_ *script, e *clientcmdapi.ExecConfig) { e.Command = "no-such-plugin-7d1f" }, `the plugin "no-such-plugin-7d1f" is not installed; apt-get install plugin`},
		"no such path":  {func(_ *script, e *clientcmdapi.ExecConfig) { e.Command = "/none/plugin" }, `the plugin "/none/plugin" is not installed; apt-get install plugin`},
		"an exit code": {func(s *script, e *clientcmdapi.ExecConfig) {
			e.Command, e.Args = "/bin/sh", []string{"-c", "echo please log in >&2; exit 3"}
		}, `failed: exit status 3: please log in`},
		"several lines": {func(s *script, e *clientcmdapi.ExecConfig) {
			e.Command, e.Args = "/bin/sh", []string{"-c", `printf '\033[31mfirst\nsecond\377\n' >&2; exit 3`}
		}, `exit status 3: [31mfirst second`},
		"endless words": {func(s *script, e *clientcmdapi.ExecConfig) {
			e.Command, e.Args = "/bin/sh", []string{"-c", "while :; do echo word; done"}
		}, "it wrote more than 1048576 bytes"},
		"endless complaints": {func(s *script, e *clientcmdapi.ExecConfig) {
			e.Command, e.Args = "/bin/sh", []string{"-c", "i=0; while [ $i -lt 2000 ]; do echo word >&2; i=$((i+1)); done; exit 1"}
		}, "exit status 1: word"},
		"nothing": {func(s *script, e *clientcmdapi.ExecConfig) { s.write(s.answer, "") }, "want an ExecCredential as JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			config := s.config()
			c.change(s, config)
			p, err := pluginOf(&rest.Config{ExecProvider: config})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = p.credential(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
				t.Errorf("error %.2000v, want %q in it", err, c.want)
			}
		})
	}
}

// TestPluginThatHangs: it ends with the request that waits for it, and so does what it has started.
func TestPluginThatHangs(t *testing.T) {
	config := newScript(t).config()
	config.Command, config.Args = "/bin/sh", []string{"-c", "sleep 1000 & wait"}
	p, err := pluginOf(&rest.Config{ExecProvider: config})
	if err != nil {
		t.Fatal(err)
	}
	over := errors.New("the request is over")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, over)
	defer cancel()
	if _, err = p.credential(ctx); !errors.Is(err, over) {
		t.Errorf("error %v", err)
	}
	if p.failed != nil {
		t.Error("the next request is told the failure of this one")
	}
	if _, err = p.run(t.Context(), 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "failed: it did not end within 50ms") {
		t.Errorf("error %v", err)
	}
}

// TestOthersDoNotWaitForAPlugin: while one request has it run, others use a credential that is still good.
func TestOthersDoNotWaitForAPlugin(t *testing.T) {
	p := newScript(t).plugin()
	c := &issued{token: "t", renew: time.Now().Add(-time.Minute), end: time.Now().Add(time.Minute)}
	p.issued.Store(c)
	p.turn <- struct{}{}
	if got, err := p.credential(t.Context()); got != c || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	p.issued.Store(&issued{token: "t", renew: c.renew, end: time.Now().Add(-time.Second)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := p.credential(ctx); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %+v, %v", got, err)
	}
}

func TestAnswerOfAPlugin(t *testing.T) {
	of := func(status string) string {
		return fmt.Sprintf(`{"kind":"ExecCredential","apiVersion":%q,"status":%s}`, execV1, status)
	}
	for answer, want := range map[string]string{
		`no JSON`: "want an ExecCredential as JSON",
		strings.Replace(of(`{"token":"t"}`), "/v1", "/v1beta1", 1):  `apiVersion "client.authentication.k8s.io/v1beta1"; want ExecCredential and ` + execV1,
		strings.Replace(of(`{"token":"t"}`), "ExecCred", "Cred", 1): `kind "Credential"`,
		of(`null`):                          "no status",
		of(`{}`):                            "a status without a credential",
		of(`{"token":"a\nb"}`):              "a token with a line break",
		of(`{"clientCertificateData":"x"}`): "want both, or neither",
		of(`{"clientKeyData":"x"}`):         "want both, or neither",
		of(`{"clientCertificateData":"x","clientKeyData":"y"}`): "clientCertificateData and clientKeyData: tls:",
		of(`{"token":"t","expirationTimestamp":"tomorrow"}`):    "want an ExecCredential as JSON",
	} {
		if _, err := parseIssued([]byte(answer), execV1, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", answer, err, want)
		}
	}
}

func FuzzAnswerOfAPlugin(f *testing.F) {
	f.Add([]byte(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t","expirationTimestamp":"2030-01-01T00:00:00Z"}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		now := time.Unix(1e9, 0)
		c, err := parseIssued(answer, execV1, now)
		switch {
		case (c == nil) != (err != nil):
			t.Errorf("%+v, %v", c, err)
		case c == nil:
		case c.token == "" && c.key == "" || (c.key == "") != (c.certificate == "") || strings.Contains(c.token, "\n"):
			t.Errorf("%+v is no credential", c)
		case c.renew.After(c.end) || c.end.After(now) && !c.renew.After(now):
			t.Errorf("it is replaced at %v, and ends at %v", c.renew, c.end)
		}
	})
}
