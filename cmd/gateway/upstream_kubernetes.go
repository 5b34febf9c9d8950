package main

import (
	"log/slog"

	"github.com/watchtide/watchtide/cmd/gateway/config"
	"github.com/watchtide/watchtide/stream/kubesource"
)

func kubernetesConfig(k config.KubernetesSource, w config.Watch, logger *slog.Logger) kubesource.Config {
	of := w.Kubernetes
	return kubesource.Config{
		Kubeconfig: k.Kubeconfig, Context: k.Context, StallAfter: k.StallAfter,
		Group: of.Group, Version: of.Version, Resource: of.Resource, Namespace: of.Namespace,
		LabelSelector: of.LabelSelector, FieldSelector: of.FieldSelector,
		Logger: logger.With("watch", w.Name),
	}
}
