package config

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"k8s.io/apimachinery/pkg/fields"
)

// KubernetesSource is a source of type "kubernetes": the API server of a cluster.
type KubernetesSource struct {
	// Kubeconfig is the name of a file as kubectl reads it (the service account of
	// the pod). It is read for each connection.
	Kubeconfig string `yaml:"kubeconfig,is=kubeconfig"`
	// Context is the name of one of its contexts (its current-context).
	Context string `yaml:"context"`
	// StallAfter is the silence after which the server counts as stalled.
	StallAfter time.Duration `yaml:"stall_after,min=2s"`
}

// KubernetesWatch specifies which objects a watch of a source of type
// kubernetes follows.
type KubernetesWatch struct {
	// Group is the API group (the core group).
	Group string `yaml:"group,is=kubernetes group"`
	// Version is the version of the group.
	Version string `yaml:"version,required,is=kubernetes version"`
	// Resource is the plural name.
	Resource string `yaml:"resource,required,is=kubernetes plural"`
	// Namespace narrows to one namespace (all).
	Namespace string `yaml:"namespace,is=namespace"`
	// LabelSelector narrows to objects whose labels match (all).
	LabelSelector string `yaml:"label_selector,is=label selector"`
	// FieldSelector narrows to objects whose fields match (all).
	FieldSelector string `yaml:"field_selector,is=field selector"`
}

func (k *KubernetesSource) check(d *decoder, at decode.Value) {
	if d.IsGiven(&k.Context) && !d.IsGiven(&k.Kubeconfig) {
		d.Errorf(at, "context is one of a kubeconfig; want kubeconfig as well, or neither in a pod")
	}
}

// kubernetesName is for names of the API, which are parts of a path and have no escapes.
var kubernetesName = decode.OnlyOf(decode.LowerCase + decode.Digits + "-.")

// fieldValue escapes what a field selector would read as its own.
func fieldValue(value string) (string, bool) {
	return fields.EscapeValue(value), utf8.ValidString(value) && !strings.ContainsRune(value, 0)
}
