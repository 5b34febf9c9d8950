package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// epochs names the revision order of a server. See the package comment.
//
// Owned by Watch.
type epochs struct {
	endings map[string]string // suffixes of names, by the name without
	reached map[string]uint64 // the newest revision that was committed, by name
}

// name returns the name of the server's order.
func (e *epochs) name(ctx context.Context, c *client) (string, error) {
	cluster, err := c.cluster(ctx)
	if err != nil {
		return "", err
	}
	f := c.config
	name := shortHash(cluster, f.Group, f.Version, f.Resource, f.Namespace, f.LabelSelector, f.FieldSelector)
	return name + e.endings[name], nil
}

// wentBack handles a server that is behind its earlier answers in an order: it
// is the same cluster, but in another order, for which it has no name. It
// returns a new name.
func (e *epochs) wentBack(name string) string {
	name, _, _ = strings.Cut(name, "~")
	e.rename(name, fmt.Sprintf("~%06x", rand.IntN(1<<24)))
	return name + e.endings[name]
}

// adopt returns the name of an order that another process has renamed, if that goes on; else the name.
func (e *epochs) adopt(name, goesOn string) string {
	ending, ours := strings.CutPrefix(goesOn, name)
	if !ours || !strings.HasPrefix(ending, "~") {
		return name
	}
	e.rename(name, ending)
	return goesOn
}

// rename gives the order of a name without an ending another one.
func (e *epochs) rename(name, ending string) {
	if e.endings == nil {
		e.endings = map[string]string{}
	}
	e.endings[name] = ending
}

// reach records how far an order has advanced.
func (e *epochs) reach(name string, revision uint64) {
	if e.reached == nil {
		e.reached = map[string]uint64{}
	}
	e.reached[name] = max(e.reached[name], revision)
}

// cluster returns the best readable identification of the cluster.
func (c *client) cluster(ctx context.Context) (string, error) {
	paths := []string{"/api/v1/namespaces/kube-system"}
	if c.config.Group != "" {
		paths = append(paths, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+c.config.Resource+"."+c.config.Group)
	}
	for _, path := range paths {
		uid, err := c.uid(ctx, path)
		if uid != "" || err != nil {
			return uid, err
		}
	}
	return "at " + c.base.Host + c.base.Path + " " + c.ca, nil
}

// uid returns the uid of one object; "" if it may not be read or does not exist.
func (c *client) uid(ctx context.Context, path string) (string, error) {
	var of struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	err := c.get(ctx, path, nil, &of)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	return of.Metadata.UID, err
}

// shortHash is so short that a view's name, which is this with a suffix, is
// short enough too and need not be hashed.
func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:4])
}
