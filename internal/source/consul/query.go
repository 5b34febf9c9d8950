package consul

import (
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/watchtide/watchtide/stream"
)

// query is what is asked of the HTTP API for a collection, and how its answer is read.
type query struct {
	path   string
	params url.Values
	floor  string // path of a key that does not exist, whose index is that of the whole store; "": the collection has none
	right  string // the rules that allow to read all of it
	named  bool   // the answer is an object, and not a list; the name of each element comes before it
	// element reads an element of the answer.
	element func(d *json.Decoder, add func(item)) error
}

// item is a resource as an answer shows it.
type item struct {
	key      string
	value    []byte
	encoding string
	version
}

// version is what is remembered of a resource that was served.
type version struct {
	revision uint64 // 0, in an answer: the upstream gives none
	created  uint64 // tells a key from an earlier one of the same name
	sum      [16]byte
}

// recurse is the parameter that asks for all keys below one.
const recurse = "recurse"

// query returns the query of the collection.
func (c *Config) query() query {
	q := query{params: url.Values{}}
	for name, value := range map[string]string{
		"dc": c.Datacenter, "ns": c.Namespace, "partition": c.Partition, "filter": c.FilterExpression,
	} {
		if value != "" {
			q.params.Set(name, value)
		}
	}
	switch c.collection() {
	case KV:
		q.path = "/v1/kv/" + c.Prefix
		q.params.Set(recurse, "")
		q.floor = q.path + probeName
		q.right = rule("key_prefix", c.Prefix)
		q.element = c.readKey
	case Health:
		q.right = rule("service_prefix", "") + " " + rule("node_prefix", "")
		q.path, q.element = "/v1/internal/ui/nodes", readNode
		if c.Service != "" {
			q.right = rule("service", c.Service) + " " + rule("node_prefix", "")
			q.path, q.element = "/v1/health/service/"+c.Service, readInstance
		}
	case Services:
		q.right = rule("service_prefix", "") + " " + rule("node_prefix", "")
		q.path, q.element, q.named = "/v1/catalog/services", readService, true
	case Nodes:
		q.right = rule("node_prefix", "")
		q.path, q.element = "/v1/catalog/nodes", readCatalogNode
	case Checks:
		q.right = rule("service_prefix", "") + " " + rule("node_prefix", "")
		q.path, q.element = "/v1/health/state/any", readCheck
	case Intentions:
		q.right = `service_prefix "" { policy = "read", intentions = "read" }`
		q.path, q.element = "/v1/connect/intentions", readIntention
	}
	return q
}

// rule is an ACL rule that allows to read.
func rule(kind, name string) string {
	quoted, _ := json.Marshal(name)
	return kind + " " + string(quoted) + ` { policy = "read" }`
}

// readKey reads a key of the key-value store.
func (c *Config) readKey(d *json.Decoder, add func(item)) error {
	var k struct {
		Key                      string
		Value                    []byte
		Flags, LockIndex         uint64
		Session                  string
		CreateIndex, ModifyIndex uint64
	}
	if err := d.Decode(&k); err != nil {
		return err
	}
	key, inside := strings.CutPrefix(k.Key, c.Prefix)
	if !inside {
		return invalid("key", k.Key, "one that begins with "+c.Prefix)
	}
	if key == "" {
		return nil // the folder itself
	}
	value, encoding := c.Values.Value(k.Value)
	if c.Entries {
		entry, err := valued(key, struct {
			Value     json.RawMessage `json:"value"`
			Encoding  string          `json:"encoding,omitempty"`
			Flags     uint64          `json:"flags"`
			Session   string          `json:"session"`
			LockIndex uint64          `json:"lock_index"`
		}{value, encoding, k.Flags, k.Session, k.LockIndex})
		if err != nil {
			return err
		}
		value, encoding = entry.value, ""
	}
	add(item{key: key, value: value, encoding: encoding, version: version{revision: k.ModifyIndex, created: k.CreateIndex}})
	return nil
}

// valued is an item of a value whose place in the order is not known.
func valued(key string, value any) (item, error) {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return item{}, err
	}
	text := []byte(strings.TrimSuffix(out.String(), "\n"))
	return item{key: key, value: text, version: version{sum: sumOf(text)}}, nil
}

func sumOf(value []byte) [16]byte {
	sum := sha256.Sum256(value)
	return [16]byte(sum[:16])
}

// resource is the item in the order of revisions.
func (i *item) resource() stream.Resource {
	return stream.Resource{Key: i.key, Revision: i.revision, Value: i.value, Encoding: i.encoding}
}
