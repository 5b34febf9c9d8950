package sseclient

import "encoding/json"

// Resource is one member of a watch as it stands in JSON.
type Resource struct {
	Key         string          `json:"key"`
	Revision    string          `json:"revision"`
	Value       json.RawMessage `json:"value"`
	Encoding    string          `json:"encoding,omitempty"`
	KeyEncoding string          `json:"key_encoding,omitempty"`
}

// ID tells resources of one watch apart: the key, unless it stands in base64,
// which could be the key of another one.
func (r Resource) ID() string {
	if r.KeyEncoding == "" {
		return r.Key
	}
	return r.KeyEncoding + ":\x00" + r.Key
}
