package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/stream/source/kubernetes"
)

// kubernetes returns the readers for the keys of a source of type kubernetes.
func (d *decoder) kubernetes(k *KubernetesSource) map[string]field {
	return map[string]field{
		"kubeconfig":  d.kubeconfig(&k.Kubeconfig),
		"context":     d.str(&k.Context),
		"stall_after": d.durationAtLeast(kubernetes.MinStallAfter, &k.StallAfter),
	}
}

// kubernetesWatch returns the readers for the keys that only watches of a
// cluster have.
func (d *decoder) kubernetesWatch(w *KubernetesWatch) map[string]field {
	named := func(s string) bool { return s != "" && kubernetes.ValidName(s) }
	return map[string]field{
		"group":          d.strThat(kubernetes.WantGroup, kubernetes.ValidName, &w.Group),
		"version":        d.strThat(kubernetes.WantVersion, named, &w.Version),
		"resource":       d.strThat(kubernetes.WantResource, named, &w.Resource),
		"namespace":      d.strThat(kubernetes.WantNamespace, kubernetes.ValidName, &w.Namespace),
		"label_selector": d.checked("a label selector", kubernetes.CheckLabelSelector, &w.LabelSelector),
		"field_selector": d.checked("a field selector", kubernetes.CheckFieldSelector, &w.FieldSelector),
	}
}

// kubeconfig reads the name of a file, relative to the configuration, or to the
// home directory after "~/". Its existence and content are checked at each
// connection.
func (d *decoder) kubeconfig(into *string) field {
	read := d.strThat("the name of a kubeconfig file", func(s string) bool { return s != "" }, into)
	return func(v value) {
		read(v)
		if *into != "" && !filepath.IsAbs(*into) && !strings.HasPrefix(*into, "~/") {
			*into = filepath.Join(d.dir, *into)
		}
	}
}

// checked reads text that check validates.
func (d *decoder) checked(what string, check func(string) error, into *string) field {
	return func(v value) {
		s, ok := d.text(v, what, nil)
		if !ok {
			return
		}
		if err := check(s.expanded); err != nil {
			d.errorf(s.value, "%v", err)
			return
		}
		*into = s.expanded
	}
}

// checkKubernetes reports a context without a file.
func (d *decoder) checkKubernetes(k *KubernetesSource, at value) {
	if k.Context != "" && k.Kubeconfig == "" {
		d.errorf(at, "context is one of a kubeconfig; want kubeconfig as well, or neither in a pod")
	}
}

// checkKubernetesWatch reports which keys are missing to select the objects.
// The key source is not treated as a misspelled resource.
func (d *decoder) checkKubernetesWatch(entries []entry, at value) {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.name == "source" })
	if d.lacks(entries, "version") {
		d.errorf(at, "version is missing; want %s", kubernetes.WantVersion)
	}
	if d.lacks(entries, "resource") {
		d.errorf(at, "resource is missing; want %s", kubernetes.WantResource)
	}
}
