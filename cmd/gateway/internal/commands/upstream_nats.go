package commands

import (
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/source/nats"
)

func natsConfig(n config.NATSSource, w config.Watch) nats.Config {
	return nats.Config{
		URL: n.URL, Bucket: w.Bucket, Keys: w.Keys, Values: w.Values, Domain: n.Domain, InboxPrefix: n.InboxPrefix, TLS: n.TLS,
		CredentialsFile: n.CredentialsFile, NKeyFile: n.NKeyFile, TokenFile: n.TokenFile,
		User: n.Username, PasswordFile: n.PasswordFile,
		StallAfter: n.StallAfter, PollInterval: n.PollInterval,
	}
}
