package commands

import (
	"context"
	"log/slog"
	"maps"
	"reflect"

	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/source/kubernetes"
)

// clusterAccess is what the gateway asks the cluster of auth.kubernetes, and what it has learned from
// the answers. A reload that changes neither the section nor the source keeps it.
//
// Static after construction.
type clusterAccess struct {
	section config.Cluster
	source  config.Source
	server  *kubernetes.Reviewer
	tokens  *cluster.Tokens
	rights  *cluster.Rights

	providers map[string]cluster.Prefixes // whose users the cluster knows too, by issuer
}

// clusterOf returns the access of a configuration: before, if that is the same; nil: it has none.
func clusterOf(c *config.Config, before *clusterAccess, logger *slog.Logger) (*clusterAccess, error) {
	section := c.Auth.Kubernetes
	if section.Source == "" {
		return nil, nil
	}
	source, err := sourceOf(c, config.Watch{Source: section.Source})
	if err != nil {
		return nil, err
	}
	providers := map[string]cluster.Prefixes{}
	for _, i := range c.Auth.JWT {
		if i.Kubernetes.Known {
			providers[i.Issuer] = cluster.Prefixes{Name: i.Kubernetes.NamePrefix, Groups: i.Kubernetes.GroupsPrefix}
		}
	}
	if before != nil && reflect.DeepEqual(before.section, section) && before.source.Equal(source) && maps.Equal(before.providers, providers) {
		return before, nil
	}
	server, err := kubernetes.NewReviewer(source.Kubernetes)
	if err != nil {
		return nil, err
	}
	return &clusterAccess{
		section: section, source: source, server: server, providers: providers,
		tokens: cluster.NewTokens(cluster.TokensConfig{
			Server: apiServer{server}, Issuer: section.Source, Audiences: section.Audiences, Hold: section.Hold, Refresh: section.Refresh, Log: logger,
		}),
		rights: cluster.NewRights(cluster.RightsConfig{
			Server: apiServer{server}, Log: logger, Refresh: section.Refresh, Hold: section.Hold, ReviewsPerSecond: section.ReviewsPerSecond,
			UserOf: cluster.UserOf(section.Source, providers),
		}),
	}, nil
}

// close closes the connection, unless next goes on with it. c may be nil.
func (c *clusterAccess) close(next *clusterAccess) {
	if c != nil && c != next {
		c.server.Close()
	}
}

// stats returns figures of what the cluster is asked, by kind of question. c may be nil.
func (c *clusterAccess) stats() map[string]cluster.Stats {
	if c == nil {
		return nil
	}
	return map[string]cluster.Stats{"token": c.tokens.Stats(), "access": c.rights.Stats()}
}

// apiServer is a cluster.Server.
type apiServer struct{ of *kubernetes.Reviewer }

// ReviewToken implements [cluster.Server].
func (s apiServer) ReviewToken(ctx context.Context, token string, audiences []string) (cluster.Review, error) {
	r, err := s.of.ReviewToken(ctx, token, audiences)
	return cluster.Review{Authenticated: r.Authenticated, User: cluster.User(r.User), Audiences: r.Audiences}, err
}

// ReviewAccess implements [cluster.Server].
func (s apiServer) ReviewAccess(ctx context.Context, u cluster.User, a cluster.Attributes) (bool, error) {
	return s.of.ReviewAccess(ctx, kubernetes.User(u), kubernetes.Attributes(a))
}

// Namespaces implements [cluster.Server].
func (s apiServer) Namespaces(ctx context.Context, most int) ([]string, error) {
	return s.of.Namespaces(ctx, most)
}

// FollowRules implements [cluster.Server].
func (s apiServer) FollowRules(ctx context.Context, changed func(namespace string)) error {
	return s.of.FollowRules(ctx, changed)
}
