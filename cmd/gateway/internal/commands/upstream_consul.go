package commands

import (
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/source/consul"
)

func consulConfig(c config.ConsulSource, w config.Watch) consul.Config {
	of := w.Consul
	return consul.Config{
		Address: c.Address, TLS: c.TLS, TokenFile: c.TokenFile,
		Type: of.ResourceType, Partition: of.Partition, Namespace: of.Namespace, NamePrefix: of.NamePrefix,
		Probe: c.ProbeInterval, Relist: c.ListInterval, MaxMessageBytes: c.MaxMessageBytes,
	}
}
