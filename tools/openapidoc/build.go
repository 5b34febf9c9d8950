package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/goccy/go-yaml"
)

// version of the OpenAPI specification that the document is written in: the
// newest that kin-openapi can both check and check a server against.
const version = "3.0.3"

// build converts the generated OpenAPI 2 document, applies the overlay and
// checks the result. The same input gives the same bytes: keys are sorted.
func build(generated, overlay []byte) ([]byte, error) {
	document, err := convert(generated)
	if err != nil {
		return nil, fmt.Errorf("generated document: %w", err)
	}
	patch, err := readOverlay(overlay)
	if err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	out, err := encode(mergePatch(document, patch))
	if err != nil {
		return nil, err
	}
	if err := check(out); err != nil {
		return nil, fmt.Errorf("document with the overlay applied: %w", err)
	}
	return out, nil
}

// convert turns an OpenAPI 2 document into OpenAPI 3.
func convert(generated []byte) (any, error) {
	var v2 openapi2.T
	if err := json.Unmarshal(generated, &v2); err != nil {
		return nil, err
	}
	v3, err := openapi2conv.ToV3(&v2)
	if err != nil {
		return nil, err
	}
	v3.OpenAPI = version
	raw, err := json.Marshal(v3)
	if err != nil {
		return nil, err
	}
	return decode(raw)
}

func readOverlay(overlay []byte) (any, error) {
	raw, err := yaml.YAMLToJSON(overlay)
	if err != nil {
		return nil, err
	}
	return decode(raw)
}

func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// check refuses a document that is not valid OpenAPI, dangling references and
// wrong examples included.
func check(document []byte) error {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return err
	}
	return doc.Validate(context.Background(), openapi3.EnableExamplesValidation())
}
