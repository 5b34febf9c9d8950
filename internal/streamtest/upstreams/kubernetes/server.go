package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/client-go/rest"
)

// certificate is the name of the server's pair of files, which it creates
// once and finds again after a restart.
const certificate = "apiserver"

// nowhere is the cluster that the server would query to authenticate clients,
// if it were part of one. It is never queried.
const nowhere = `
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
users: [{name: none, user: {token: none}}]
`

// server is the API server, ready to run.
type server struct {
	generic *genericapiserver.GenericAPIServer
}

// newServer configures the server as its own test fixtures do, except for the
// address and the certificate, which a restart finds again, and for the
// permissions.
func newServer(s settings, l net.Listener, etcd net.Addr) (*server, error) {
	kubeconfig := filepath.Join(s.data, "nowhere.yaml")
	if err := os.WriteFile(kubeconfig, []byte(nowhere), 0o600); err != nil {
		return nil, err
	}
	o := options.NewCustomResourceDefinitionsServerOptions(os.Stderr, os.Stderr)
	flags := pflag.NewFlagSet("kubernetes", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(arguments(s, kubeconfig, etcd)); err != nil {
		return nil, err
	}
	secure := o.RecommendedOptions.SecureServing
	secure.Listener, secure.BindPort = l, l.Addr().(*net.TCPAddr).Port
	secure.ExternalAddress = l.Addr().(*net.TCPAddr).IP
	secure.ServerCert.CertDirectory = filepath.Join(s.data, "certificates")
	secure.ServerCert.PairName = certificate
	if err := o.ServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, err
	}
	if err := o.Complete(); err != nil {
		return nil, err
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return build(o, access{tokens: filepath.Join(s.data, "tokens")})
}

// arguments switches off features that need a cluster around the server.
func arguments(s settings, kubeconfig string, etcd net.Addr) []string {
	a := []string{
		"--etcd-servers=http://" + etcd.String(),
		"--authentication-skip-lookup",
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--kubeconfig=" + kubeconfig,
		"--enable-priority-and-fairness=false",
		"--disable-admission-plugins=NamespaceLifecycle,MutatingAdmissionWebhook," +
			"ValidatingAdmissionWebhook,ValidatingAdmissionPolicy,MutatingAdmissionPolicy",
	}
	if s.features != "" {
		a = append(a, "--feature-gates="+s.features)
	}
	return a
}

func build(o *options.CustomResourceDefinitionsServerOptions, a access) (*server, error) {
	config, err := o.Config()
	if err != nil {
		return nil, err
	}
	generic := config.GenericConfig
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(
		openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions),
		openapinamer.NewDefinitionNamer(apiserver.Scheme))
	a.guard(&generic.Config)
	api, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	return &server{api.GenericAPIServer}, nil
}

// run serves until ctx ends. ready is called once the server reports itself
// healthy; /readyz would wait for namespaces, which do not exist here.
func (s *server) run(ctx context.Context, ready func()) error {
	client, err := rest.HTTPClientFor(s.generic.LoopbackClientConfig)
	if err != nil {
		return err
	}
	go func() {
		for !s.healthy(ctx, client) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
		ready()
	}()
	return s.generic.PrepareRun().RunWithContext(ctx)
}

func (s *server) healthy(ctx context.Context, client *http.Client) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.generic.LoopbackClientConfig.Host+"/healthz", nil)
	if err != nil {
		return false
	}
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
