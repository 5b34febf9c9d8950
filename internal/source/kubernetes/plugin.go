package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	lru "github.com/hashicorp/golang-lru/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/pkg/apis/clientauthentication"
	"k8s.io/client-go/pkg/apis/clientauthentication/install"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientauthv1beta1 "k8s.io/client-go/pkg/apis/clientauthentication/v1beta1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// pluginTimeout is how long a plugin may run, and renewTimeout while its former credential is good.
	pluginTimeout = 30 * time.Second
	renewTimeout  = 10 * time.Second
	// maxPluginOutput is how many bytes a plugin may write.
	maxPluginOutput = 1 << 20
	// maxPluginText is how many bytes of what a plugin says are in an error.
	maxPluginText = 300
	// renewBefore is how long before its end a credential is replaced, but not earlier than in the
	// last tenth of its time.
	renewBefore = time.Minute
	// pluginPause is how long a plugin is not run again after it has failed, or has issued what the server
	// refuses.
	pluginPause = 5 * time.Second
	// mostPlugins is how many plugins are remembered, with what they have issued.
	mostPlugins = 64
)

// plugin is a program that a kubeconfig names, which issues credentials.
//
// Safe for concurrent use.
type plugin struct {
	// Static after construction.
	config *clientcmdapi.ExecConfig
	info   string        // what the program is told, in KUBERNETES_EXEC_INFO
	turn   chan struct{} // has a value while the program runs

	// Atomic: written with turn. nil: there is none.
	issued atomic.Pointer[issued]

	// Guarded by turn.
	failed error     // of the last run; nil: it did not fail
	next   time.Time // when it may be run again, if it failed
}

// issued is a credential of a plugin.
//
// Static after construction.
type issued struct {
	token            string
	certificate, key string    // of the client, in PEM; empty: none
	at, renew, end   time.Time // the last two zero: it lasts until the server refuses it
}

// good reports whether a credential can still be used.
func (c *issued) good(now time.Time) bool { return c != nil && (c.end.IsZero() || now.Before(c.end)) }

// due reports whether it should be replaced.
func (c *issued) due(now time.Time) bool { return !c.renew.IsZero() && !now.Before(c.renew) }

// plugins are those that the process knows: the watches of a source share what theirs has issued.
var plugins = func() *lru.Cache[string, *plugin] {
	c, _ := lru.New[string, *plugin](mostPlugins) // no error: the size is positive
	return c
}()

// execCodecs encode what a plugin is told, in each of its versions.
var execCodecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme)
}()

// pluginOf returns the plugin of a loaded kubeconfig; nil: it has none, or another credential, which
// comes first.
func pluginOf(c *rest.Config) (*plugin, error) {
	e := c.ExecProvider
	if e == nil || c.BearerToken != "" || c.BearerTokenFile != "" || c.Username != "" || c.CertFile != "" || len(c.CertData) > 0 {
		return nil, nil
	}
	versions := []schema.GroupVersion{clientauthv1.SchemeGroupVersion, clientauthv1beta1.SchemeGroupVersion}
	at := slices.IndexFunc(versions, func(v schema.GroupVersion) bool { return v.String() == e.APIVersion })
	switch {
	case at < 0:
		return nil, fmt.Errorf("credentials: the plugin %q has apiVersion %.100q: want %s", e.Command, e.APIVersion, versions[0])
	case e.InteractiveMode == clientcmdapi.AlwaysExecInteractiveMode:
		return nil, fmt.Errorf("credentials: the plugin %q has interactiveMode Always, and there is no terminal: want a plugin that needs none, with interactiveMode Never or IfAvailable", e.Command)
	}
	told := new(clientauthentication.ExecCredential)
	if e.ProvideClusterInfo {
		var err error
		if told.Spec.Cluster, err = rest.ConfigToExecCluster(c); err != nil {
			return nil, fmt.Errorf("credentials: the plugin %q: %w", e.Command, err)
		}
	}
	info, err := runtime.Encode(execCodecs.LegacyCodec(versions[at]), told)
	if err != nil {
		return nil, fmt.Errorf("credentials: the plugin %q: %w", e.Command, err)
	}
	p := &plugin{config: e, info: string(bytes.TrimSpace(info)), turn: make(chan struct{}, 1)}
	key, err := json.Marshal([]any{e.Command, e.Args, e.Env, e.APIVersion, p.info})
	if err != nil {
		return nil, err
	}
	if known, ok, _ := plugins.PeekOrAdd(string(key), p); ok {
		return known, nil
	}
	return p, nil
}

// credential returns what the program has issued. It runs the program if that is nothing, or ends soon. While
// one request waits for that, others use what is still good.
func (p *plugin) credential(ctx context.Context) (*issued, error) {
	if c := p.issued.Load(); c.good(time.Now()) {
		if !c.due(time.Now()) {
			return c, nil
		}
		select {
		case p.turn <- struct{}{}:
			defer func() { <-p.turn }()
			return p.replace(ctx, renewTimeout)
		default:
			return c, nil
		}
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
		return p.replace(ctx, pluginTimeout)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// replace runs the program, unless it has been run meanwhile, or has just failed. The caller has its turn.
func (p *plugin) replace(ctx context.Context, limit time.Duration) (*issued, error) {
	now := time.Now()
	before := p.issued.Load()
	good := before.good(now)
	if good && !before.due(now) {
		return before, nil
	}
	if p.failed == nil || !now.Before(p.next) {
		c, err := p.run(ctx, limit)
		if err == nil {
			p.issued.Store(c)
			p.failed = nil
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, err // it says nothing about the program
		}
		p.failed, p.next = err, time.Now().Add(pluginPause)
	}
	if good {
		return before, nil
	}
	return nil, p.failed
}

// refused has the program run again, unless it has issued another credential since, or this one just now: a
// server that refuses all does not have it run all the time.
func (p *plugin) refused(c *issued) {
	if time.Since(c.at) >= pluginPause {
		p.issued.CompareAndSwap(c, nil)
	}
}

// run runs the program.
func (p *plugin) run(ctx context.Context, limit time.Duration) (*issued, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %v", limit))
	defer cancel()
	out, said := &bounded{most: maxPluginOutput, strict: true}, &bounded{most: maxPluginText}
	cmd := exec.CommandContext(ctx, p.config.Command, p.config.Args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, said, time.Second
	cmd.Env = os.Environ()
	for _, v := range p.config.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Env = append(cmd.Env, "KUBERNETES_EXEC_INFO="+p.info)
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	err := cmd.Run()
	switch cause := context.Cause(ctx); {
	case out.over: // which also ended it
		err = fmt.Errorf("it wrote more than %d bytes", out.most)
	case err != nil && cause != nil:
		err = cause
	}
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // after the latter, what it has started still has its output
		c, err := parseIssued(out.text.Bytes(), p.config.APIVersion, time.Now())
		if err != nil {
			return nil, fmt.Errorf("credentials: the answer of the plugin %q: %w", p.config.Command, err)
		}
		return c, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("credentials: the plugin %q is not installed%s", p.config.Command, after("; ", p.config.InstallHint))
	}
	return nil, fmt.Errorf("credentials: the plugin %q failed: %w%s", p.config.Command, err, after(": ", said.text.String()))
}

// after returns a text after a separator, on one line of bounded length, or nothing if it is empty.
func after(separator, text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxPluginText)], "")
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	if len(words) == 0 {
		return ""
	}
	return separator + strings.Join(words, " ")
}

// parseIssued parses what a plugin has written.
func parseIssued(out []byte, version string, now time.Time) (*issued, error) {
	var answer struct {
		APIVersion string                             `json:"apiVersion"`
		Kind       string                             `json:"kind"`
		Status     *clientauthv1.ExecCredentialStatus `json:"status"`
	}
	switch err := json.Unmarshal(out, &answer); {
	case err != nil:
		return nil, fmt.Errorf("%w; want an ExecCredential as JSON", err)
	case answer.Kind != "ExecCredential" || answer.APIVersion != version:
		return nil, fmt.Errorf("kind %.100q and apiVersion %.100q; want ExecCredential and %s", answer.Kind, answer.APIVersion, version)
	case answer.Status == nil:
		return nil, errors.New("no status; want one with a token, or with a certificate and its key")
	}
	s := answer.Status
	c := &issued{at: now, token: s.Token, certificate: s.ClientCertificateData, key: s.ClientKeyData}
	switch {
	case (c.certificate == "") != (c.key == ""):
		return nil, errors.New("one of clientCertificateData and clientKeyData; want both, or neither")
	case c.token == "" && c.key == "":
		return nil, errors.New("a status without a credential; want a token, or a certificate and its key")
	case strings.ContainsAny(c.token, "\r\n"):
		return nil, errors.New("a token with a line break; want one without")
	case c.key != "":
		if _, err := tls.X509KeyPair([]byte(c.certificate), []byte(c.key)); err != nil {
			return nil, fmt.Errorf("clientCertificateData and clientKeyData: %w", err)
		}
	}
	if s.ExpirationTimestamp != nil {
		c.end = s.ExpirationTimestamp.Time
		c.renew = c.end.Add(-min(renewBefore, max(c.end.Sub(now), 0)/10))
	}
	return c, nil
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	text   bytes.Buffer
	most   int
	strict bool // more is an error
	over   bool // there was more
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	left := b.most - b.text.Len()
	b.text.Write(p[:min(len(p), left)])
	if b.over = b.over || len(p) > left; b.over && b.strict {
		return left, io.ErrShortWrite
	}
	return len(p), nil
}
