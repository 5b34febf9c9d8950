package commands

import (
	"crypto/tls"
	"slices"

	"github.com/watchtide/watchtide/internal/config"
	hostnames "github.com/watchtide/watchtide/internal/hosts"
)

// hostsOf returns the names under which the gateway may be addressed: the
// configured ones, and those in the certificates of its listeners, which cannot
// be foreign names.
func hostsOf(c *config.Config) []string {
	hosts := slices.Clone(c.HTTP.Hosts)
	for _, secure := range []*tls.Config{c.HTTP.TLS, c.GRPC.TLS, c.Operations.TLS} {
		if secure == nil {
			continue
		}
		for _, certificate := range secure.Certificates {
			for _, name := range certificate.Leaf.DNSNames {
				known := slices.Contains(hosts, name) || hostnames.IsLoopback(name+":0")
				if !known && hostnames.Check(name) == nil {
					hosts = append(hosts, name)
				}
			}
		}
	}
	return hosts
}
