package consul

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	_ "github.com/hashicorp/consul/proto-public/pbmulticluster/v2" // the types that servers have and that are public
	"github.com/hashicorp/consul/proto-public/pbresource"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
)

// render writes a resource as Consul's own JSON, on one line and
// deterministically. It may change r meanwhile.
//
// The data of a resource can be of any type, and most types are not public.
// Such data keeps its type and its bytes:
//
//	"data":{"@type":"type.googleapis.com/…","value":"base64"}
func render(r *pbresource.Resource) ([]byte, error) {
	data := r.Data
	r.Data = nil
	out, err := protojson.Marshal(r)
	r.Data = data
	if err != nil {
		return nil, err
	}
	if data != nil {
		out = withData(out, renderAny(data))
	}
	// protojson adds random spaces so that its output is not relied on.
	var compact bytes.Buffer
	err = json.Compact(&compact, out)
	return compact.Bytes(), err
}

// withData adds the last field to an object.
func withData(object, data []byte) []byte {
	object = object[:len(object)-1]
	if len(object) > 1 {
		object = append(object, ',')
	}
	object = append(append(object, `"data":`...), data...)
	return append(object, '}')
}

// renderAny writes data of a known type as JSON, of another one as bytes.
func renderAny(data *anypb.Any) []byte {
	if out, err := protojson.Marshal(data); err == nil {
		return out
	}
	out, _ := json.Marshal(struct {
		Type  string `json:"@type"`
		Value string `json:"value"`
	}{data.GetTypeUrl(), base64.StdEncoding.EncodeToString(data.GetValue())})
	return out
}
