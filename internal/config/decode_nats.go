package config

import (
	"path/filepath"

	"github.com/watchtide/watchtide/stream/source/nats"
)

// nats returns the readers for the keys of a source of type nats.
func (d *decoder) nats(n *NATSSource) map[string]field {
	return map[string]field{
		"url":              d.strThat(nats.WantURL, nats.ValidURL, &n.URL),
		"tls":              d.clientTLS(&n.TLS),
		"credentials_file": d.presentFile(&n.CredentialsFile),
		"nkey_file":        d.presentFile(&n.NKeyFile),
		"token_file":       d.tokenFile(&n.TokenFile),
		"username":         d.str(&n.Username),
		"password_file":    d.tokenFile(&n.PasswordFile),
		"domain":           d.strThat(nats.WantBucket, nats.ValidBucket, &n.Domain),
		"inbox_prefix":     d.strThat(nats.WantPrefix, nats.ValidPrefix, &n.InboxPrefix),
		"stall_after":      d.durationAtLeast(nats.MinStallAfter, &n.StallAfter),
		"poll_interval":    d.durationAtLeast(nats.MinPollInterval, &n.PollInterval),
	}
}

// natsWatch returns the readers for the keys that only watches of a bucket have.
func (d *decoder) natsWatch(w *Watch) map[string]field {
	return map[string]field{
		"bucket": d.strThat(nats.WantBucket, nats.ValidBucket, &w.Bucket),
		"keys":   d.strThat(nats.WantKeys, nats.ValidKeys, &w.Keys),
	}
}

// checkNATS reports keys that contradict each other.
func (d *decoder) checkNATS(n *NATSSource, at value) {
	var ways int
	for _, given := range []string{n.CredentialsFile, n.NKeyFile, n.TokenFile, n.Username + n.PasswordFile} {
		if given != "" {
			ways++
		}
	}
	switch {
	case ways > 1:
		d.errorf(at, "want one of credentials_file, nkey_file, token_file, and username with password_file")
	case (n.Username == "") != (n.PasswordFile == ""):
		d.errorf(at, "want both username and password_file, or neither")
	}
}

// presentFile reads the name of a file that must exist now, and may change later.
func (d *decoder) presentFile(into *string) field {
	return func(v value) {
		var now namedFile
		d.fileNamed(&now)(v)
		name, ok := d.text(v, "the name of a file", nil)
		if !ok {
			return
		}
		if *into = name.expanded; !filepath.IsAbs(*into) {
			*into = filepath.Join(d.dir, *into)
		}
	}
}
