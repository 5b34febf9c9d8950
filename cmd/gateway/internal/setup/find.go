package setup

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// askingTime is how long one upstream may take to say what there is to watch.
const askingTime = 3 * time.Second

// Options say where upstreams are. If one is given, nothing else is looked for.
type Options struct {
	etcd, consul, nats, postgres, kubernetes, dir string
}

// Register adds the flags.
func (o *Options) Register(f *pflag.FlagSet) {
	f.StringVar(&o.etcd, "etcd", "", "`ENDPOINTS` of etcd, with commas between them, such as 127.0.0.1:2379")
	f.StringVar(&o.consul, "consul", "", "`ADDRESS` of Consul's HTTP port, such as 127.0.0.1:8500")
	f.StringVar(&o.nats, "nats", "", "`URL` of NATS, such as nats://127.0.0.1:4222")
	f.StringVar(&o.postgres, "postgres", "", "`URL` of a database of PostgreSQL, such as postgres://watchtide@127.0.0.1/app")
	f.StringVar(&o.kubernetes, "kubernetes", "", "a `KUBECONFIG` file, or in-cluster: the service account of the pod")
	f.StringVar(&o.dir, "dir", "", "a `DIRECTORY` of JSON and YAML files")
}

func (o Options) given() bool { return o != Options{} }

// Environment is where the client programs of the upstreams find their servers.
type Environment struct {
	Getenv func(string) string
	Home   string // the home directory; empty: there is none
	// Etcd, Consul and NATS are the addresses on this machine that are tried.
	Etcd, Consul, NATS string
}

// Local has the addresses that the upstreams use on this machine unless they are told
// otherwise.
func Local(getenv func(string) string, home string) Environment {
	return Environment{Getenv: getenv, Home: home, Etcd: "127.0.0.1:2379", Consul: "127.0.0.1:8500", NATS: "nats://127.0.0.1:4222"}
}

// search looks for one kind of upstream. nil: there is none.
type search func(context.Context) *Source

// Find returns the upstreams that the options name, or else those that it finds: those that
// the environment names, and those that listen on this machine. It asks each what there is to
// watch. At the end there is a store if there is nothing else.
func Find(ctx context.Context, o Options, e Environment) []Source {
	all := []search{e.etcd(o.etcd), e.consul(o.consul), e.nats(o.nats), e.postgres(o.postgres), e.kubernetes(o.kubernetes), dir(o.dir)}
	given := []bool{o.etcd != "", o.consul != "", o.nats != "", o.postgres != "", o.kubernetes != "", o.dir != ""}
	found := make([]*Source, len(all))
	var looking sync.WaitGroup
	for i, find := range all {
		if o.given() && !given[i] {
			continue
		}
		looking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, askingTime)
			defer cancel()
			found[i] = find(ctx)
		})
	}
	looking.Wait()
	var sources []Source
	for _, s := range found {
		if s != nil {
			sources = append(sources, *s)
		}
	}
	if len(sources) == 0 {
		sources = append(sources, store())
	}
	distinct(sources)
	return sources
}

// store is the source where there is no other. Its folder is made at the first start.
func store() Source {
	const file = "watchtide-state/notes.db"
	return Source{
		Type: "store", Where: "in the file " + file, Fields: []string{"path: " + file},
		Notes: []string{
			"Neither etcd, Consul, NATS, PostgreSQL nor Kubernetes was found. This one is written over",
			"HTTP, and keeps what is written in a file in a folder beside this one.",
		},
		Watches: []Watch{{Name: "notes", Note: `curl -X PUT http://127.0.0.1:8080/v1/watches/notes/resources/a -d '"b"'`}},
	}
}

// listens reports whether something accepts connections at an address on this machine.
func listens(ctx context.Context, address string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// firstLine returns an error as a comment can have it.
func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), "\r", ""), "\n")
	return line
}
