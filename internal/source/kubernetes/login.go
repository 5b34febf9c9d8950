package kubernetes

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/watchtide/watchtide/internal/source/adapter"
)

// login makes requests with one credential. Each credential has connections of its own, so that a new
// one is used for every request from then on, while a watch goes on over the connection of the old one.
//
// Static after construction.
type login struct {
	http   http.Client
	issued *issued // by the plugin; nil: the credential is another one
	idle   func()  // closes the connections that no request uses
}

// enter returns the login for the next request.
func (c *client) enter(ctx context.Context) (*login, error) {
	c.mu.Lock()
	plugin := c.plugin
	c.mu.Unlock()
	var credential *issued
	if plugin != nil {
		var err error
		if credential, err = plugin.credential(ctx); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.login != nil && c.login.issued == credential {
		return c.login, nil
	}
	made, err := c.newLogin(credential)
	if err != nil {
		return nil, err
	}
	c.replaceLogin(made)
	return made, nil
}

// renew returns a login for a request that was refused with another one. The kubeconfig and the files
// that it names are read again, and a plugin is run again.
func (c *client) renew(ctx context.Context, refused *login) (*login, error) {
	if err := c.forget(refused); err != nil {
		return nil, err
	}
	return c.enter(ctx)
}

// forget has the next request read everything again, unless another one has done so already.
func (c *client) forget(refused *login) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plugin != nil && refused.issued != nil {
		c.plugin.refused(refused.issued)
	}
	if c.login != refused {
		return nil
	}
	return c.reload()
}

// reload reads the kubeconfig again, unless it is of another server by now: that is for the next
// Watch call. mu is held.
func (c *client) reload() error {
	loaded, err := c.config.load()
	if err != nil {
		return err
	}
	if loaded.Host != c.loaded.Host {
		return nil
	}
	plugin, err := pluginOf(loaded)
	if err != nil {
		return err
	}
	c.loaded, c.plugin = loaded, plugin
	c.replaceLogin(nil)
	return nil
}

// replaceLogin has later requests use another login; nil: one that is yet to be made. mu is held.
func (c *client) replaceLogin(by *login) {
	if c.login != nil {
		c.login.idle()
	}
	c.login = by
}

// newLogin makes a login. mu is held.
func (c *client) newLogin(credential *issued) (*login, error) {
	with := rest.CopyConfig(c.loaded)
	with.ExecProvider = nil // the plugin is ours
	if credential != nil {
		with.BearerToken = credential.token
		with.CertData, with.KeyData = []byte(credential.certificate), []byte(credential.key)
	}
	rt, t, err := newTransport(with, c.open, c.config.StallAfter, c.sent, c.proxy)
	if err != nil {
		return nil, err
	}
	return &login{
		http:   http.Client{Transport: rt, CheckRedirect: refuseRedirect},
		issued: credential, idle: t.CloseIdleConnections,
	}, nil
}

// notSent marks an error after which it is certain that a request was not sent.
func notSent(err error) error { return adapter.NotWritten(err) }
