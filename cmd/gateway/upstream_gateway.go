package main

import (
	"github.com/watchtide/watchtide/cmd/gateway/config"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/ssesource"
)

// gateway returns the source of a watch at another gateway, whose watches all
// share its connections.
func (u *upstreams) gateway(s config.Source, w config.Watch) (stream.Source, error) {
	if u.gateways[s.Name] == nil {
		upstream, err := ssesource.New(sseConfig(s.Gateway))
		if err != nil {
			return nil, err
		}
		u.gateways[s.Name] = upstream
	}
	return u.gateways[s.Name].Source(w.Watch, w.Prefix)
}

func sseConfig(g config.GatewaySource) ssesource.Config {
	return ssesource.Config{
		URL: g.URL, TLS: g.TLS, TokenFile: g.TokenFile, Header: g.Headers,
		StallAfter: g.StallAfter, MaxEventBytes: g.MaxEventBytes,
	}
}
