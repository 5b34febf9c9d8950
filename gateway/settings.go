package gateway

import (
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/rest"
	"github.com/watchtide/watchtide/gateway/internal/rpc"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/unary"
	"github.com/watchtide/watchtide/internal/headers"
)

// settings are the parts of the gateway that depend on the configuration. A request, a call or
// a stream uses those that are current when it begins; Reload replaces them as a whole.
//
// Static after construction.
type settings struct {
	*Gateway      // the parts that all settings share
	cfg           Config
	lookup        *authz.Lookup
	proxies       limits.Proxies
	hosts         headers.Hosts
	deps          *session.Deps
	unary         *rest.API
	calls         rpc.Deps
	introspection *introspection.Operators
	who           *credential.Authenticator // nil: the gateway does not ask for credentials

	public    http.Handler // for everybody
	local     http.Handler // for a listener that only this machine can reach
	operators http.Handler
	guarded   http.Handler // for an operations listener that other machines can reach

	replaced chan struct{} // closed when there are newer ones
}

// settings returns the settings of a configuration with all defaults filled in. before are the
// former ones; nil: there are none.
func (g *Gateway) settings(c Config, deps *session.Deps, lookup *authz.Lookup, before *settings) (*settings, error) {
	s := &settings{
		Gateway: g, cfg: c, deps: deps, lookup: lookup,
		proxies: limits.Proxies{Trusted: c.TrustedProxies, Header: c.ForwardedHeader},
		hosts:   headers.NewHosts(slices.Concat(c.Hosts, ownHosts)), replaced: make(chan struct{}),
	}
	if err := s.authenticate(before); err != nil {
		return nil, err
	}
	service := &unary.Service{Instance: c.Instance, Lookup: s.lookup, Refused: s.refuseList}
	s.unary = rest.New(rest.Deps{Streams: deps, Service: service, Proxies: s.proxies, Answers: g.answers, Bodies: g.bodies, Lists: g.lists, Coding: s.coding, Authenticator: s.who})
	s.calls = rpc.Deps{Streams: deps, Service: service, Proxies: s.proxies, Answers: g.answers, Bodies: g.bodies, Hosts: s.hosts, Authenticator: s.who, Quotas: g.quotas}
	s.introspection = introspection.NewOperators(s.introspectionDeps())
	s.public, s.local, s.operators = s.handler(false, nil), s.handler(true, nil), s.handler(true, c.Profiles)
	s.guarded = s.operators
	if c.Access != nil {
		s.guarded = s.handler(false, c.Profiles)
	}
	return s, nil
}

// introspectionDeps returns the parts of the gateway that operators see.
func (g *settings) introspectionDeps() introspection.Deps {
	c := &g.cfg
	return introspection.Deps{
		Instance: c.Instance, Version: c.Version, Started: g.started, DeliveryReports: c.DeliveryReports,
		Registry: g.registry, Lookup: g.lookup, Streams: g.subscribers, Recorder: g.series, Views: g.views,
		Carriers: func() []introspection.Carrier { return g.shards.Carriers() },
		Siblings: introspection.NewSiblings(c.Instance, c.Replicas, introspection.SiblingAccess{Token: c.ReplicasToken, TLS: c.ReplicasTLS}, net.DefaultResolver),
		Readiness: func(now time.Time) (bool, []string) {
			state := g.readiness(now)
			return state.ready(), state.reasons()
		},
		Limits: g.inUse, Answers: g.answers, Proxies: g.proxies,
	}
}

// refuseList counts a list, or a move of a window, whose view was not opened, and returns the answer.
func (g *settings) refuseList(why *limits.Refusal) *problem.Problem {
	g.metrics.ListRefused(why.Reason)
	return why.Problem(2 * g.deps.RetryHint())
}

// access returns the settings of the way from requests to watches.
func (g *Gateway) access(c Config) authz.Config {
	return authz.Config{
		Watches: c.Registry, Policy: c.policy(), Rights: c.rights(), Audit: g.audit, Views: g.views, Uncompressed: c.Uncompressed,
		PrimeWait: c.PrimeWait, Retry: c.Retry, Refused: g.metrics.CredentialRefused, Refusals: g.refusals,
	}
}

// streams returns the settings of streams.
func (c Config) streams() session.Settings {
	return session.Settings{
		Heartbeat: c.Heartbeat, WriteTimeout: c.WriteTimeout, AheadWait: c.AheadWait,
		Retry: c.Retry, MaxAge: c.MaxAge, MinRate: c.MinRate,
	}
}

// calls returns what a gRPC call that begins now uses.
func (g *Gateway) calls() rpc.Deps { return g.now.Load().calls }
