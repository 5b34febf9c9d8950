package consul

import (
	"encoding/json"
	"slices"
	"strings"
)

// readService reads an element of /v1/catalog/services: a name and its tags.
func readService(d *json.Decoder, add func(item)) error {
	name, err := d.Token()
	if err != nil {
		return err
	}
	out := struct {
		Service string   `json:"service"`
		Tags    []string `json:"tags"`
	}{Tags: []string{}}
	out.Service, _ = name.(string)
	if err := d.Decode(&out.Tags); err != nil {
		return err
	}
	if out.Tags == nil {
		out.Tags = []string{}
	}
	slices.Sort(out.Tags) // Consul has them in any order
	return addValue(out.Service, out, add)
}

// readCatalogNode reads an element of /v1/catalog/nodes.
func readCatalogNode(d *json.Decoder, add func(item)) error {
	var n struct {
		Node, ID, Address, Datacenter string
		TaggedAddresses, Meta         map[string]string
	}
	if err := d.Decode(&n); err != nil {
		return err
	}
	return addValue(n.Node, struct {
		Node            string            `json:"node"`
		ID              string            `json:"id"`
		Address         string            `json:"address"`
		Datacenter      string            `json:"datacenter"`
		TaggedAddresses map[string]string `json:"tagged_addresses"`
		Meta            map[string]string `json:"meta"`
	}{n.Node, n.ID, n.Address, n.Datacenter, notNil(n.TaggedAddresses), notNil(n.Meta)}, add)
}

// readCheck reads an element of /v1/health/state/any.
func readCheck(d *json.Decoder, add func(item)) error {
	var c struct {
		Node, PeerName, CheckID, Name, Status, Notes, Output, ServiceID, ServiceName, Type string
	}
	if err := d.Decode(&c); err != nil {
		return err
	}
	if c.PeerName != "" {
		return nil
	}
	if c.Node == "" || c.CheckID == "" {
		return invalid("check", c.Node+"/"+c.CheckID, "the name of a node, and an id")
	}
	return addValue(c.Node+"/"+c.CheckID, struct {
		Node      string `json:"node"`
		ID        string `json:"id"`
		Name      string `json:"name"`
		Status    string `json:"status"`
		Notes     string `json:"notes"`
		Output    string `json:"output"`
		Service   string `json:"service"`
		ServiceID string `json:"service_id"`
		Type      string `json:"type"`
	}{c.Node, c.CheckID, c.Name, c.Status, c.Notes, c.Output, c.ServiceName, c.ServiceID, c.Type}, add)
}

// end is one end of an intention.
type end struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Partition string `json:"partition,omitempty"`
	Peer      string `json:"peer,omitempty"`
	Group     string `json:"sameness_group,omitempty"`
}

// String is what tells it from others: its name, after what is not Consul's default.
func (e end) String() string {
	out := e.Name
	for _, unit := range []string{e.Namespace, e.Partition} {
		if unit != "" && unit != "default" {
			out = unit + "." + out
		}
	}
	if other := e.Peer + e.Group; other != "" {
		out += "@" + other
	}
	return out
}

// readIntention reads an element of /v1/connect/intentions.
func readIntention(d *json.Decoder, add func(item)) error {
	var i struct {
		SourceName, SourceNS, SourcePartition, SourcePeer, SourceSamenessGroup string
		DestinationName, DestinationNS, DestinationPartition                   string
		Action, Description                                                    string
		Precedence                                                             int
		Permissions                                                            json.RawMessage
		Meta                                                                   map[string]string
	}
	if err := d.Decode(&i); err != nil {
		return err
	}
	from := end{i.SourceName, i.SourceNS, i.SourcePartition, i.SourcePeer, i.SourceSamenessGroup}
	to := end{Name: i.DestinationName, Namespace: i.DestinationNS, Partition: i.DestinationPartition}
	if from.Name == "" || to.Name == "" {
		return invalid("intention", from.Name+"/"+to.Name, "a source and a destination")
	}
	return addValue(from.String()+"/"+to.String(), struct {
		Source      end               `json:"source"`
		Destination end               `json:"destination"`
		Action      string            `json:"action,omitempty"`
		Permissions json.RawMessage   `json:"permissions,omitempty"`
		Precedence  int               `json:"precedence"`
		Description string            `json:"description"`
		Meta        map[string]string `json:"meta"`
	}{from, to, i.Action, i.Permissions, i.Precedence, i.Description, notNil(i.Meta)}, add)
}

// addValue adds an item.
func addValue(key string, value any, add func(item)) error {
	if strings.Trim(key, "/") == "" {
		return invalid("name", key, "one")
	}
	i, err := valued(key, value)
	if err != nil {
		return err
	}
	add(i)
	return nil
}

func notNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
