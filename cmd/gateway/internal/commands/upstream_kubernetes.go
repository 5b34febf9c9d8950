package commands

import (
	"log/slog"

	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/source/kubernetes"
)

func kubernetesConfig(k config.KubernetesSource, w config.Watch, logger *slog.Logger) kubernetes.Config {
	of := w.Kubernetes
	return kubernetes.Config{
		Kubeconfig: k.Kubeconfig, Context: k.Context, StallAfter: k.StallAfter,
		Group: of.Group, Version: of.Version, Resource: of.Resource, Namespace: of.Namespace,
		LabelSelector: of.LabelSelector, FieldSelector: of.FieldSelector,
		Logger: logger.With("watch", w.Name),
	}
}
