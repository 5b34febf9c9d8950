package kubernetes

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/watchtide/watchtide/stream"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

const (
	// DefaultStallAfter is less than the heartbeat of the gateway, so that a
	// dead connection is noticed within one.
	DefaultStallAfter = 10 * time.Second
	// MinStallAfter leaves a busy server time to answer a ping.
	MinStallAfter = 2 * time.Second
	// DefaultPageSize is what client-go's own lists use.
	DefaultPageSize = 500
)

// Config specifies which objects of which cluster are followed. The fields with a key are those of a
// source of type "kubernetes" in a configuration file.
type Config struct {
	// Kubeconfig is the name of a file as kubectl reads it; "~/" stands for the
	// home directory. It is read again at each connection. Empty: the service
	// account of the pod in which this process runs.
	Kubeconfig string `yaml:"kubeconfig,is=kubeconfig"`
	// Context is the name of one of its contexts. Empty: its current-context.
	Context string `yaml:"context"`

	// Objects are those that are followed.
	Objects `yaml:"-"`

	// StallAfter is how long the server may be silent on an open connection,
	// pings included. 0: DefaultStallAfter; at least MinStallAfter.
	StallAfter time.Duration `yaml:"stall_after,min=2s"`
	// Logger logs events between connections. nil: slog.Default.
	Logger *slog.Logger `yaml:"-"`

	// watchFor is the requested duration of a watch; 0: see client.watch.
	watchFor time.Duration
	// pageSize is how many objects a list requests at once.
	pageSize int
	// maxObject is how many bytes an object may have.
	maxObject int64
	// inCluster finds the service account; tests have no pod.
	inCluster func() (*rest.Config, error)
}

// Objects are a collection of a cluster. The fields are keys of a watch of a source of type
// "kubernetes".
type Objects struct {
	// Group is the API group, empty for the core group (pods, services…).
	Group string `yaml:"group,is=kubernetes group"`
	// Version is the version within the group, for instance "v1". Required.
	Version string `yaml:"version,required,is=kubernetes version"`
	// Resource is the plural name, as in URLs: "deployments". Required.
	Resource string `yaml:"resource,required,is=kubernetes plural"`
	// Namespace narrows to one namespace. Empty: all of them, and
	// cluster-scoped resources.
	Namespace string `yaml:"namespace,is=namespace"`
	// LabelSelector narrows to objects whose labels match, as in kubectl -l.
	LabelSelector string `yaml:"label_selector,is=label selector"`
	// FieldSelector narrows to objects whose fields match, as in kubectl
	// --field-selector; the server determines which fields exist.
	FieldSelector string `yaml:"field_selector,is=field selector"`
	// Impersonate makes each write in the name of who makes it, so that the cluster decides by
	// their rights.
	Impersonate bool `yaml:"impersonate"`
	// ImpersonateExtra sends their uid and their extra fields too, as far as the cluster itself has said these.
	ImpersonateExtra bool `yaml:"impersonate_extra"`
}

func (c *Config) check() error {
	if c.Version == "" || c.Resource == "" {
		return errors.New(`kubernetes: no version or no resource: want for instance "v1" and "pods"`)
	}
	for _, p := range []struct{ what, got, want string }{
		{"group", c.Group, WantGroup},
		{"version", c.Version, WantVersion},
		{"resource", c.Resource, WantResource},
		{"namespace", c.Namespace, WantNamespace},
	} {
		if !ValidName(p.got) {
			return fmt.Errorf("kubernetes: %w", &stream.InvalidError{What: p.what, Got: p.got, Want: p.want})
		}
	}
	var err error
	c.Validate(func(_ any, problem string) { err = errors.New("kubernetes: " + problem) })
	if err != nil {
		return err
	}
	if c.StallAfter != 0 && c.StallAfter < MinStallAfter {
		return fmt.Errorf("kubernetes: %w", &stream.InvalidError{
			What: "stall after", Got: c.StallAfter.String(), Want: MinStallAfter.String() + " or more"})
	}
	if err := CheckLabelSelector(c.LabelSelector); err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	if err := CheckFieldSelector(c.FieldSelector); err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	return nil
}

// Descriptions of the names that select the followed objects.
const (
	WantGroup     = "the name of an API group, like apps, or nothing for the core group"
	WantVersion   = "a version of the group, like v1"
	WantResource  = "the plural name of a resource in small letters, like deployments"
	WantNamespace = "the name of a namespace, or nothing for all"
)

// ValidName reports whether s can be one of these: lower-case letters, digits,
// '-' and '.', of which the last two not at either end. Empty is valid as well.
func ValidName(s string) bool {
	for i, r := range s {
		inner := (r == '-' || r == '.') && i > 0 && i < len(s)-1
		if !inner && !('a' <= r && r <= 'z') && !('0' <= r && r <= '9') {
			return false
		}
	}
	return true
}

// CheckLabelSelector validates a label selector.
func CheckLabelSelector(s string) error {
	if _, err := labels.Parse(s); err != nil {
		return &stream.InvalidError{What: "label selector", Got: s, Want: "for instance app=web,tier!=test: " + err.Error()}
	}
	return nil
}

// CheckFieldSelector validates a field selector, as far as that is possible
// without the server.
func CheckFieldSelector(s string) error {
	if _, err := fields.ParseSelector(s); err != nil {
		return &stream.InvalidError{What: "field selector", Got: s, Want: "for instance metadata.name=web: " + err.Error()}
	}
	return nil
}

// Validate reports fields that cannot be together.
func (c *Config) Validate(report func(field any, problem string)) {
	if c.Context != "" && c.Kubeconfig == "" {
		report(c, "context is one of a kubeconfig; want kubeconfig as well, or neither in a pod")
	}
}

func (c *Config) setDefaults() {
	if c.StallAfter == 0 {
		c.StallAfter = DefaultStallAfter
	}
	if c.pageSize == 0 {
		c.pageSize = DefaultPageSize
	}
	if c.maxObject == 0 {
		c.maxObject = defaultMaxObject
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.inCluster == nil {
		c.inCluster = rest.InClusterConfig
	}
}

// name is the resource as Kubernetes' own messages write it.
func (c *Config) name() string {
	if c.Group == "" {
		return c.Resource + "/" + c.Version
	}
	return c.Resource + "." + c.Group + "/" + c.Version
}
