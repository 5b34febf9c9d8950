package watchtidev1

import _ "embed"

// Document is the OpenAPI 3.0 document in JSON, as served at /openapi.json. It
// is made by `make generate` of the proto, gateway.yaml and overlay.yaml. It
// must not be changed.
//
//go:embed openapi.json
var Document []byte
