package consul

import (
	"encoding/json"
	"slices"
	"strings"
)

// node, service and check are those of Consul's HTTP API, as far as they are served.
type node struct {
	Node, Address, PeerName string
}

type service struct {
	ID, Service, Address string
	Port                 int
	Tags                 []string
	Meta                 map[string]string
}

type check struct {
	CheckID, Name, Status, Output, ServiceID string
}

// instance is an instance of a service as it is served.
type instance struct {
	Service string            `json:"service"`
	Node    string            `json:"node"`
	ID      string            `json:"id"`
	Address string            `json:"address"`
	Port    int               `json:"port"`
	Tags    []string          `json:"tags"`
	Meta    map[string]string `json:"meta"`
	Status  string            `json:"status"`
	Checks  []checkState      `json:"checks"`
}

// checkState is a check of an instance, or of its node.
type checkState struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
	Output string `json:"output"`
}

// readInstance reads an element of /v1/health/service.
func readInstance(d *json.Decoder, add func(item)) error {
	var e struct {
		Node    node
		Service service
		Checks  []check
	}
	if err := d.Decode(&e); err != nil {
		return err
	}
	return addInstance(e.Node, e.Service, e.Checks, add)
}

// readNode reads an element of /v1/internal/ui/nodes: a node with everything on it. It is the one list
// that has the address and the checks of all instances.
func readNode(d *json.Decoder, add func(item)) error {
	var e struct {
		node
		Services []service
		Checks   []check
	}
	if err := d.Decode(&e); err != nil {
		return err
	}
	if e.PeerName != "" {
		return nil // of another cluster, whose own gateway serves it
	}
	for _, s := range e.Services {
		if err := addInstance(e.node, s, e.Checks, add); err != nil {
			return err
		}
	}
	return nil
}

func addInstance(n node, s service, checks []check, add func(item)) error {
	if n.Node == "" || s.Service == "" || s.ID == "" {
		return invalid("instance of a service", n.Node+"/"+s.ID, "the names of a node and of a service, and an id")
	}
	out := instance{
		Service: s.Service, Node: n.Node, ID: s.ID, Address: s.Address, Port: s.Port,
		Tags: s.Tags, Meta: notNil(s.Meta), Checks: []checkState{},
	}
	if out.Address == "" {
		out.Address = n.Address
	}
	if out.Tags == nil {
		out.Tags = []string{}
	}
	for _, c := range checks {
		if c.ServiceID == "" || c.ServiceID == s.ID {
			out.Checks = append(out.Checks, checkState{c.CheckID, c.Name, c.Status, c.Output})
		}
	}
	slices.SortFunc(out.Checks, func(a, b checkState) int { return strings.Compare(a.ID, b.ID) })
	out.Status = worst(out.Checks)
	return addValue(s.Service+"/"+n.Node+"/"+s.ID, out, add)
}

// states are those of checks, the best first.
var states = []string{"passing", "warning", "critical", maintenance}

// maintenance is the state of an instance that an operator has taken out.
const maintenance = "maintenance"

// worst returns the worst state of checks: that of an instance. A state that is not known is critical.
func worst(checks []checkState) string {
	var at int
	for _, c := range checks {
		switch is := slices.Index(states, c.Status); {
		case c.ID == "_node_maintenance", strings.HasPrefix(c.ID, "_service_maintenance:"):
			at = len(states) - 1
		case is < 0:
			at = max(at, slices.Index(states, "critical"))
		default:
			at = max(at, is)
		}
	}
	return states[at]
}
