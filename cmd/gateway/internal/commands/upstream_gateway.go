package commands

import (
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/stream"
	gatewaysource "github.com/watchtide/watchtide/stream/source/gateway"
)

// gateway returns the source of a watch at another gateway, whose watches all
// share its connections.
func (u *upstreams) gateway(s config.Source, w config.Watch) (stream.Source, error) {
	if u.gateways[s.Name] == nil {
		upstream, err := gatewaysource.New(sseConfig(s.Gateway))
		if err != nil {
			return nil, err
		}
		u.gateways[s.Name] = upstream
	}
	return u.gateways[s.Name].Source(w.Watch, w.Definition)
}

func sseConfig(g config.GatewaySource) gatewaysource.Config {
	return gatewaysource.Config{
		URL: g.URL, TLS: g.TLS, TokenFile: g.TokenFile, Header: g.Headers,
		StallAfter: g.StallAfter, MaxEventBytes: g.MaxEventBytes,
	}
}
