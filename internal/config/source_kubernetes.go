package config

import "time"

// KubernetesSource is a source of type "kubernetes": the API server of a cluster.
type KubernetesSource struct {
	// Kubeconfig is the name of a file as kubectl reads it ("kubeconfig"; the
	// service account of the pod). It is read for each connection.
	Kubeconfig string
	// Context is the name of one of its contexts ("context"; its
	// current-context).
	Context string
	// StallAfter is the silence after which the server counts as stalled
	// ("stall_after"; at least 2s).
	StallAfter time.Duration
}

// KubernetesWatch specifies which objects a watch of a source of type
// kubernetes follows.
type KubernetesWatch struct {
	// Group is the API group ("group"; the core group).
	Group string
	// Version is the version of the group ("version"; required).
	Version string
	// Resource is the plural name ("resource"; required).
	Resource string
	// Namespace narrows to one namespace ("namespace"; all).
	Namespace string
	// LabelSelector narrows to objects whose labels match ("label_selector"; all).
	LabelSelector string
	// FieldSelector narrows to objects whose fields match ("field_selector"; all).
	FieldSelector string
}
