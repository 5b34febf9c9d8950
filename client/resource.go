package client

import "encoding/json"

// Resource is one member of a watch in its JSON form.
type Resource struct {
	Key         string          `json:"key"`
	Revision    string          `json:"revision"`
	Value       json.RawMessage `json:"value"`
	Encoding    string          `json:"encoding,omitempty"`
	KeyEncoding string          `json:"key_encoding,omitempty"`
}

// ID identifies a resource within a watch: the key, unless it is in base64,
// which could be the key of another one.
func (r Resource) ID() string {
	if r.KeyEncoding == "" {
		return r.Key
	}
	return r.KeyEncoding + ":\x00" + r.Key
}
