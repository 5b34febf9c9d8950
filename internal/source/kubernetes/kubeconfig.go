package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// load returns the cluster's address and our credentials. It is called for each
// connection, so that a replaced file takes effect.
func (c *Config) load() (*rest.Config, error) {
	if c.Kubeconfig == "" {
		return c.loadInCluster()
	}
	path, err := withoutTilde(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	loaded, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path},
		&clientcmd.ConfigOverrides{CurrentContext: c.Context},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return loaded, nil
}

func (c *Config) loadInCluster() (*rest.Config, error) {
	loaded, err := c.inCluster()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("no kubeconfig, and this process is not in a pod " +
			"(KUBERNETES_SERVICE_HOST is not set): want the name of a kubeconfig file")
	}
	if err != nil {
		return nil, fmt.Errorf("service account of the pod: %w", err)
	}
	return loaded, nil
}

// withoutTilde replaces a leading "~/" with the home directory.
func withoutTilde(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return filepath.Join(home, rest), nil
}
