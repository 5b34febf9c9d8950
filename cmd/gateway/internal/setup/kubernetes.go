package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// inCluster stands for the service account of a pod instead of a file.
const inCluster = "in-cluster"

// kubernetes looks for a cluster where kubectl does.
func (e Environment) kubernetes(told string) search {
	return func(ctx context.Context) *Source {
		if told == "" && e.Getenv("KUBECONFIG") == "" && e.Getenv("KUBERNETES_SERVICE_HOST") != "" {
			told = inCluster
		}
		if told == inCluster {
			return askPod(ctx)
		}
		meant := cmp.Or(told, firstFile(e.Getenv("KUBECONFIG")))
		file := meant
		if file == "" && e.Home != "" {
			file = firstFile(filepath.Join(e.Home, ".kube", "config"))
		}
		if file == "" {
			return nil
		}
		return askCluster(ctx, file, meant != "")
	}
}

// firstFile returns the first file of a list that exists.
func firstFile(list string) string {
	for _, name := range filepath.SplitList(list) {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
	return ""
}

func askPod(ctx context.Context) *Source {
	s := &Source{Type: "kubernetes", Where: "the cluster of this pod", Watches: []Watch{pods()}}
	config, err := rest.InClusterConfig()
	if err != nil {
		s.Problem = err
		return s
	}
	s.ask(ctx, config)
	return s
}

// askCluster asks the cluster of a kubeconfig. One that was not named is asked only if it is
// on this machine.
func askCluster(ctx context.Context, file string, named bool) *Source {
	file = absolute(file)
	s := &Source{Type: "kubernetes", Where: file, Fields: []string{"kubeconfig: " + quoted(file)}, Watches: []Watch{pods()}}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, nil)
	raw, err := loader.RawConfig()
	if err != nil {
		s.Problem = err
		return s
	}
	if raw.CurrentContext != "" {
		s.Fields = append(s.Fields, "context: "+quoted(raw.CurrentContext))
	}
	config, err := loader.ClientConfig()
	if err != nil {
		s.Problem = err
		return s
	}
	if !named && !isLocal(config.Host) {
		s.Notes = append(s.Notes, "It was not asked what it serves, since it is not on this machine: --kubernetes FILE does.")
		return s
	}
	s.ask(ctx, config)
	return s
}

func isLocal(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func pods() Watch {
	return Watch{Name: "pods", Fields: "version: v1, resource: pods", Note: "also: namespace, label_selector, field_selector"}
}

// resource is one that a cluster has.
type resource struct{ group, version, name string }

// ask replaces the watches by those of resources that the cluster has.
func (s *Source) ask(ctx context.Context, config *rest.Config) {
	config.Timeout = askingTime
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		s.Problem = err
		return
	}
	defer client.CloseIdleConnections()
	client.CheckRedirect = followNone
	known, err := resources(ctx, client, strings.TrimSuffix(config.Host, "/"))
	if err != nil {
		s.Problem = err
		return
	}
	if len(known) == 0 {
		return
	}
	s.Watches = nil
	for _, r := range known[:min(len(known), maxWatches)] {
		fields := "version: " + quoted(r.version) + ", resource: " + quoted(r.name)
		if r.group != "" {
			fields = "group: " + quoted(r.group) + ", " + fields
		}
		s.Watches = append(s.Watches, Watch{Name: watchName(r.name, "objects"), Fields: fields, Note: pods().Note})
	}
}

// definitions are the custom resources of a cluster.
type definitions struct {
	Items []struct {
		Spec struct {
			Group    string
			Names    struct{ Plural string }
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
}

// resources returns pods if there are any, or else custom resources.
func resources(ctx context.Context, client *http.Client, host string) ([]resource, error) {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	var core struct{ Resources []struct{ Name string } }
	_ = getJSON(ctx, client, host+"/api/v1", &core) // without it there are no pods
	for _, r := range core.Resources {
		if r.Name == "pods" {
			return []resource{{version: "v1", name: r.Name}}, nil
		}
	}
	var custom definitions
	err := getJSON(ctx, client, host+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &custom)
	var found []resource
	for _, d := range custom.Items {
		for _, v := range d.Spec.Versions {
			if v.Served {
				found = append(found, resource{d.Spec.Group, v.Name, d.Spec.Names.Plural})
				break
			}
		}
	}
	return found, err
}

// followNone follows no redirects, which could send credentials elsewhere.
func followNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func getJSON(ctx context.Context, client *http.Client, address string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}
