package config

import (
	"time"

	"github.com/watchtide/watchtide/stream/source/host"
)

// Collections are what a source of type host can watch.
var Collections = []string{host.Interfaces, host.Mounts, host.Processes}

// Watch is one entry of "watches": one named collection at one source.
type Watch struct {
	// Name is the key under "watches": 1 to 64 letters, digits, '.', '_' and '-'.
	Name string `yaml:"-"`
	// Source is the name of an entry of "sources" ("source"; required).
	Source string `yaml:"source"`
	// Prime reports whether the watch is started at start, and /readyz waits for
	// it ("prime"; true); else its first subscriber starts it.
	Prime bool `yaml:"prime"`
	// Required reports whether /readyz fails while the watch is out of sync for
	// too long ("required"; false).
	Required bool `yaml:"required"`
	// Linger is how long a watch that is not primed continues after its
	// last subscriber ("linger").
	Linger time.Duration `yaml:"linger"`
	// History is "history"; unset fields are as in "stream".
	History History `yaml:"history"`
	// Memory is the most bytes that the watch may hold ("memory"; as in "stream").
	Memory int64 `yaml:"memory,min=1MiB"`
	// SnapshotTimeout is how long a snapshot may take before the status of the
	// watch says so ("snapshot_timeout").
	SnapshotTimeout time.Duration `yaml:"snapshot_timeout"`

	// Collection is which part of the machine is watched ("collection"; required for
	// a source of type host, and for no other): processes, interfaces or mounts.
	Collection string `yaml:"collection,required,is=collection,of=host"`
	// Watch is the upstream's name for the watch ("watch"; only for sources of
	// type grpc and gateway; the watch's own name).
	Watch string `yaml:"watch,is=watch,of=gateway|grpc"`
	// Prefix narrows the watch to keys that begin with it ("prefix"; only for sources of
	// type grpc, gateway and etcd; for etcd it is not part of the keys).
	Prefix string `yaml:"prefix,of=etcd|gateway|grpc"`
	// Bucket is the name of the bucket ("bucket"; required for a source of type
	// nats, and for no other).
	Bucket string `yaml:"bucket,required,is=nats bucket,of=nats"`
	// Keys is a pattern of the keys that are watched ("keys"; only for a source of
	// type nats).
	Keys string `yaml:"keys,is=nats keys,of=nats"`
	// Kubernetes specifies which objects are followed (required for a source of
	// type kubernetes, and for no other).
	Kubernetes KubernetesWatch `yaml:",inline,of=kubernetes"`
	// Consul specifies which resources are followed (required for a source of
	// type consul, and for no other).
	Consul ConsulWatch `yaml:",inline,of=consul"`
}

func (w *Watch) check(d *decoder, at value) {
	if w.Required && !w.Prime {
		d.errorf(at, "required is for watches that are primed at start; leave out prime: false, or required")
	}
}
