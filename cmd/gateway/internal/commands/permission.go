package commands

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// Principal reads a principal from a JSON file. Without a file it returns the anonymous one.
func Principal(file string) (*access.Principal, error) {
	if file == "" {
		return &access.Principal{Mechanism: "anonymous"}, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var who struct {
		Mechanism string         `json:"mechanism"`
		Issuer    string         `json:"issuer"`
		Name      string         `json:"name"`
		Groups    []string       `json:"groups"`
		Claims    map[string]any `json:"claims"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&who); err != nil {
		return nil, fmt.Errorf("%s: %w; want an object with name, issuer, mechanism, groups and claims, as far as they are known", file, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there is more after the object", file)
	}
	return &access.Principal{Mechanism: who.Mechanism, Issuer: who.Issuer, Name: who.Name, Groups: who.Groups, Claims: who.Claims}, nil
}

// Resource reads the value of a resource from a JSON file. Its revision is 1.
func Resource(key, file string) (*stream.Resource, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var value bytes.Buffer
	if err := json.Compact(&value, data); err != nil {
		return nil, fmt.Errorf("%s: the value is no JSON: %w", file, err)
	}
	return &stream.Resource{Key: key, Revision: 1, Value: value.Bytes()}, nil
}

// permissionText returns an explanation in lines of text: of the access to a watch, and to a resource if
// r is not nil.
func permissionText(watch string, r *stream.Resource, e access.Explanation) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("roles:")
	for _, r := range e.Roles {
		line("  %s: %s", r.Name, ofRole(r))
	}
	line("watch %s: %s", watch, ofWatch(e))
	if e.Cluster != nil {
		return out.String()
	}
	for _, r := range e.Rules {
		line("  rule %d, for %s: %s", r.Number, r.Role, ofRule(r))
	}
	for _, a := range e.Additions {
		line("  warning: %s%s", a, ofWhich(r))
	}
	if r == nil {
		return out.String()
	}
	line("resource %s:", r.Key)
	line("  read: %s", ofSight(e))
	line("  write: %s", ofDecision(e.Write))
	line("  delete: %s", ofDecision(e.Delete))
	return out.String()
}

func ofRole(r access.RoleExplanation) string {
	if !r.Held {
		return "not held: " + r.Why
	}
	var with []string
	for name, value := range r.With {
		text, err := json.Marshal(value)
		if err != nil {
			text = fmt.Append(nil, value)
		}
		with = append(with, fmt.Sprintf("%s = %s", name, text))
	}
	if len(with) == 0 {
		return "held"
	}
	slices.Sort(with)
	return "held, with " + strings.Join(with, ", ")
}

// ofWhich says of which resources several rules are together.
func ofWhich(r *stream.Resource) string {
	if r == nil {
		return " of the resources that both let be read"
	}
	return " of this resource"
}

func ofWatch(e access.Explanation) string {
	switch {
	case e.Cluster != nil:
		return ofCluster(e.Cluster)
	case len(e.Rules) == 0:
		return "for nobody, since it has no rules"
	case !e.Visible:
		return "hidden, since no rule applies"
	}
	return "visible"
}

// ofCluster says whom to ask.
func ofCluster(c *access.ClusterResource) string {
	name, where := c.Resource, "in each namespace, or with -A in all"
	if c.Group != "" {
		name += "." + c.Group
	}
	if c.Namespace != "" {
		where = "in the namespace " + c.Namespace
	}
	return fmt.Sprintf("as the cluster says: who may both list and watch %s reads it; ask kubectl auth can-i list %[1]s and kubectl auth can-i watch %[1]s, %s", name, where)
}

func ofRule(r access.RuleExplanation) string {
	if !r.Held {
		return "does not apply, since the role is not held"
	}
	read := "reads nothing: " + r.Read.Why
	if r.Read.Filter != "" {
		read = "reads " + r.Read.Filter
	}
	if r.Read.Filter != "" {
		read += ofFields(r.Read)
	}
	parts := []string{read}
	if r.Write {
		parts = append(parts, "can allow writes")
	}
	if r.Delete {
		parts = append(parts, "can allow deletes")
	}
	return strings.Join(parts, "; ")
}

// ofFields says how much of values a rule shows.
func ofFields(r access.ReadExplanation) string {
	fields, except := strings.Join(r.Fields, ", "), strings.Join(r.Except, ", ")
	switch {
	case fields != "" && except != "":
		return ", of it only " + fields + " without " + except
	case fields != "":
		return ", of it only " + fields
	case except != "":
		return ", of it all but " + except
	}
	return ""
}

// ofSight says how much of the resource may be read, and by which rules.
func ofSight(e access.Explanation) string {
	var by []string
	for _, r := range e.Rules {
		if r.Read.Holds {
			by = append(by, fmt.Sprintf("rule %d", r.Number))
		}
	}
	switch e.Visibility {
	case view.Whole:
		return "all of it, by " + strings.Join(by, ", ")
	case view.Part:
		return "some fields, by " + strings.Join(by, ", ")
	}
	return "nothing: no rule lets it be seen"
}

func ofDecision(d access.Decision) string {
	if d.Allowed {
		return fmt.Sprintf("allowed by rule %d, for %s", d.Rule, d.Role)
	}
	return fmt.Sprintf("refused with %d: %s", d.Status, d.Reason)
}
