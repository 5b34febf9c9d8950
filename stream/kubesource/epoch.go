package kubesource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// epochs names the revision order. See the package comment.
//
// Owned by Watch.
type epochs struct {
	cluster string // which cluster it was that went back; with ending
	ending  string // of the name, since it did
}

// name returns the name of the order that the server is in.
func (e *epochs) name(ctx context.Context, c *client) (string, error) {
	cluster, err := c.cluster(ctx)
	if err != nil {
		return "", err
	}
	if cluster != e.cluster {
		e.cluster, e.ending = cluster, ""
	}
	f := c.config
	return shortHash(cluster, f.Group, f.Version, f.Resource, f.Namespace, f.LabelSelector, f.FieldSelector) + e.ending, nil
}

// wentBack follows from a server that is behind itself: the same cluster goes on
// in another order, which nothing in it has a name for.
func (e *epochs) wentBack() {
	e.ending = fmt.Sprintf("~%06x", rand.IntN(1<<24))
}

// cluster returns what identifies the cluster, by the best that may be read.
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

// uid returns the uid of one object; "" if it may not be read or is not there.
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

// shortHash is so short that a view's name, which is this with an ending, is one
// as well and need not be hashed.
func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:4])
}
