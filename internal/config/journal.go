package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
)

// The values of "journal" of a watch.
const (
	JournalOn   = "on"
	JournalNone = "none"
)

// Journals returns the names of the watches that are kept in the journal: those that have a source of their
// own and are primed at start, unless they say that they are not. Secrets of Kubernetes are only if they
// say so. What tells which tokens are revoked never is: an old state of it would make them valid again.
func (c *Config) Journals() (names []string) {
	if c.State.Dir == "" {
		return nil
	}
	revocations := c.rootOf(c.Auth.Revoked.Watch)
	for _, w := range c.Watches {
		if w.Name != revocations && c.isKept(w) {
			names = append(names, w.Name)
		}
	}
	return names
}

func (c *Config) isKept(w Watch) bool {
	at := slices.IndexFunc(c.Sources, func(s Source) bool { return s.Name == w.Source })
	secret := w.Kubernetes.Resource == "secrets" && w.Kubernetes.Group == ""
	switch {
	case w.ViewOf != "", !w.Prime, at < 0, c.Sources[at].Type == Store, w.Journal == JournalNone:
		return false
	}
	return !secret || w.Journal == JournalOn
}

// rootOf returns the name of the watch with a source that a watch is, or is a view of.
func (c *Config) rootOf(name string) string {
	for range len(c.Watches) {
		at := slices.IndexFunc(c.Watches, func(w Watch) bool { return w.Name == name })
		if at < 0 || c.Watches[at].ViewOf == "" {
			break
		}
		name = c.Watches[at].ViewOf
	}
	return name
}

// Identity identifies what a watch of a source follows. What only says how it is reached, or with which
// secret, does not count, nor do limits.
func (s *Source) Identity(w Watch) string {
	var of any
	switch s.Type {
	case Host:
		of = w.Collection
	case GRPCs:
		of = []string{s.GRPC.Address, w.Watch, w.Prefix}
	case Files:
		dir, err := filepath.Abs(s.Files.Dir)
		if err != nil {
			dir = s.Files.Dir
		}
		of = []any{dir, s.Files.MaxValueBytes}
	case Gateway:
		of = []string{s.Gateway.URL, w.Watch, idOf(w.Definition)}
	case Etcd:
		// Not the endpoints: members come and go, and the source compares the id of the cluster, which the epoch names.
		of = []any{s.Etcd.Username, w.Prefix, w.Values}
	case NATS:
		of = []any{s.NATS.URL, s.NATS.Domain, w.Bucket, w.Keys, w.Values}
	case Consul:
		of = []any{s.Consul.Address, s.Consul.HTTPAddress, w.Consul, w.Prefix, w.Values}
	case Postgres:
		of = []any{s.Postgres.URL, s.Postgres.Publication, w.Postgres}
	case Kubernetes:
		w.Kubernetes.Impersonate, w.Kubernetes.ImpersonateExtra = false, false // of writes
		of = []any{s.Kubernetes.Kubeconfig, s.Kubernetes.Context, w.Kubernetes}
	}
	raw, err := json.Marshal([]any{s.Type, of})
	if err != nil {
		panic("config: " + err.Error()) // it has nothing but texts and numbers
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:12])
}
