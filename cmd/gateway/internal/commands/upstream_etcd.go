package commands

import (
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/source/etcd"
)

func etcdConfig(e config.EtcdSource, w config.Watch) etcd.Config {
	return etcd.Config{
		Endpoints: e.Endpoints, Prefix: w.Prefix, Values: w.Values, TLS: e.TLS,
		Username: e.Username, Password: string(e.Password),
		ConnectTimeout: e.ConnectTimeout, RequestTimeout: e.RequestTimeout, StallAfter: e.StallAfter,
	}
}
