package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/source/adapter"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// groupInfo is the answer to /apis/<group>.
type groupInfo struct {
	Name     string `json:"name"`
	Versions []struct {
		Version string `json:"version"`
	} `json:"versions"`
}

// groupList is the answer to /apis.
type groupList struct {
	Groups []groupInfo `json:"groups"`
}

// resourceList is the answer to /apis/<group>/<version>, and to /api/<version>.
type resourceList struct {
	Resources []struct {
		Name       string `json:"name"`
		Namespaced bool   `json:"namespaced"`
	} `json:"resources"`
}

// explained adds to a 404 the name that the server does not know. If that
// lookup is forbidden or fails, the error is returned unchanged.
func (c *client) explained(ctx context.Context, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	why := c.missing(ctx)
	if why == "" {
		return err
	}
	return adapter.NewFailure(err, why)
}

// missing returns which of group, version, resource and namespace does not
// exist; "": unknown.
func (c *client) missing(ctx context.Context) string {
	var known resourceList
	err := c.get(ctx, groupPath(c.config.Group, c.config.Version), nil, &known)
	if apierrors.IsNotFound(err) {
		return c.missingVersion(ctx)
	}
	if err != nil {
		return ""
	}
	var names []string
	for _, r := range known.Resources {
		if r.Name == c.config.Resource && !r.Namespaced && c.config.Namespace != "" {
			return fmt.Sprintf("%s are in no namespace; want no namespace for them", r.Name)
		}
		if !strings.Contains(r.Name, "/") {
			names = append(names, r.Name)
		}
	}
	if slices.Contains(names, c.config.Resource) {
		return ""
	}
	return fmt.Sprintf("the server has no resource %q in %s; want the plural name of one: %s", c.config.Resource, c.where(), listed(names))
}

// missingVersion is missing for a group that lacks the version, or does not
// exist at all.
func (c *client) missingVersion(ctx context.Context) string {
	if c.config.Group == "" {
		return fmt.Sprintf("the server has no version %q of the core group; want v1, or the name of a group", c.config.Version)
	}
	var known groupInfo
	err := c.get(ctx, "/apis/"+c.config.Group, nil, &known)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("the server has no group %q; want %s", c.config.Group, c.groups(ctx))
	}
	if err != nil {
		return ""
	}
	var versions []string
	for _, v := range known.Versions {
		versions = append(versions, v.Version)
	}
	return fmt.Sprintf("the server has no version %q of the group %s; want %s", c.config.Version, c.config.Group, listed(versions))
}

// groups returns the existing groups, if the server reports them.
func (c *client) groups(ctx context.Context) string {
	var known groupList
	if err := c.get(ctx, "/apis", nil, &known); err != nil {
		return WantGroup
	}
	var names []string
	for _, g := range known.Groups {
		names = append(names, g.Name)
	}
	return "one of " + listed(names)
}

// where is the group and version in words.
func (c *client) where() string {
	if c.config.Group == "" {
		return "the core group, version " + c.config.Version
	}
	return c.config.Group + "/" + c.config.Version
}

// listed names a few, as many as a hint needs.
func listed(names []string) string {
	const most = 12
	slices.Sort(names)
	if len(names) > most {
		return strings.Join(names[:most], ", ") + "…"
	}
	if len(names) == 0 {
		return "something that it serves (it serves nothing there)"
	}
	return strings.Join(names, ", ")
}
