package commands

import (
	"github.com/watchtide/watchtide/internal/config"
	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
)

// gateway returns the source of a watch at another gateway, whose watches all
// share its connections. Those of a template share their own: clients have them come and
// go, and each time the others of a connection reconnect.
func (u *upstreams) gateway(s config.Source, w config.Watch, template string) (made, error) {
	upstream, err := u.gatewayOf(s, template)
	if err != nil {
		return made{}, err
	}
	source, err := upstream.Source(w.Watch, w.Definition)
	if err != nil {
		return made{}, err
	}
	return made{source: source, close: source.Close}, nil
}

func (u *upstreams) gatewayOf(s config.Source, template string) (*gatewaysource.Upstream, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	name := s.Name + " " + template
	if u.gateways[name] == nil {
		upstream, err := gatewaysource.New(sseConfig(s.Gateway))
		if err != nil {
			return nil, err
		}
		u.gateways[name] = upstream
	}
	return u.gateways[name], nil
}

func sseConfig(g config.GatewaySource) gatewaysource.Config {
	return gatewaysource.Config{
		URL: g.URL, TLS: g.TLS, TokenFile: g.TokenFile, Header: g.Headers,
		StallAfter: g.StallAfter, MaxEventBytes: g.MaxEventBytes,
	}
}
