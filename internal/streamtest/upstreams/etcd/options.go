package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// options are the flags.
type options struct {
	name, listen, peer, cluster, token string
	joining                            bool
	data                               string
	cert, key, ca                      string
	tokenTTL                           uint
	snapshot                           string
	bump                               uint64
}

func (o *options) define(f *flag.FlagSet) {
	f.StringVar(&o.name, "name", "default", "name of the member")
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "host:port for clients")
	f.StringVar(&o.peer, "peer", "127.0.0.1:0", "host:port for other members; with port 0 there can be none")
	f.StringVar(&o.cluster, "cluster", "", "all members, as name=http://host:port,…; default: this one alone")
	f.StringVar(&o.token, "token", "etcd-cluster", "tells one cluster from another with the same members")
	f.BoolVar(&o.joining, "joining", false, "the cluster exists already")
	f.StringVar(&o.data, "data", "", "directory for the data; default: one that is removed at the end")
	f.StringVar(&o.cert, "cert", "", "file with the certificate for clients; with it TLS is spoken")
	f.StringVar(&o.key, "key", "", "file with its key")
	f.StringVar(&o.ca, "ca", "", "file with the authority of clients' certificates, which are then required")
	f.UintVar(&o.tokenTTL, "token-ttl", 300, "seconds after which an authentication token that is not used expires")
	f.StringVar(&o.snapshot, "restore", "", "database to begin with, if the data directory holds nothing")
	f.Uint64Var(&o.bump, "bump", 0, "by how much the revision of what is restored is raised; all below counts as compacted")
}

// config converts the flags to etcd's configuration. Nothing is synced to
// disk: the machine under a test does not lose power.
func (o *options) config() (*embed.Config, error) {
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialClusterToken = o.name, filepath.Join(o.data, "member.etcd"), o.token
	c.LogLevel, c.UnsafeNoFsync, c.BcryptCost = "error", true, 4
	c.AuthTokenTTL = o.tokenTTL
	c.TickMs, c.ElectionMs = 50, 500
	c.StrictReconfigCheck = false // members of a test need not have been stable for long
	scheme := "http"
	if o.cert != "" {
		scheme = "https"
		c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = o.cert, o.key
		c.ClientTLSInfo.TrustedCAFile, c.ClientTLSInfo.ClientCertAuth = o.ca, o.ca != ""
	}
	if o.joining {
		c.ClusterState = embed.ClusterStateFlagExisting
	}
	c.ListenClientUrls = []url.URL{{Scheme: scheme, Host: o.listen}}
	c.AdvertiseClientUrls = c.ListenClientUrls
	c.ListenPeerUrls = []url.URL{{Scheme: "http", Host: o.peer}}
	c.AdvertisePeerUrls = c.ListenPeerUrls
	c.InitialCluster = o.members()
	return c, c.Validate()
}

func (o *options) members() string {
	if o.cluster != "" {
		return o.cluster
	}
	return fmt.Sprintf("%s=http://%s", o.name, o.peer)
}

// restore creates the data directory from a snapshot, as "etcdutl snapshot
// restore" does.
func (o *options) restore() error {
	target := filepath.Join(o.data, "member.etcd")
	if _, err := os.Stat(target); o.snapshot == "" || err == nil {
		return nil
	}
	return snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: o.snapshot, OutputDataDir: target,
		Name: o.name, PeerURLs: []string{"http://" + o.peer},
		InitialCluster: o.members(), InitialClusterToken: o.token,
		SkipHashCheck: true, // a copy of the data has none
		RevisionBump:  o.bump, MarkCompacted: o.bump > 0,
	})
}
