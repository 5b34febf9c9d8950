// Command openapidoc makes openapi/watchtidev1/openapi.json, the document that the gateway
// serves, of two halves: what protoc-gen-openapiv2 derives from the proto and
// its HTTP mapping, and openapi/overlay.yaml, which says the rest: the streams,
// the status codes, the headers, and that a value is JSON and not base64.
//
//	openapidoc -overlay overlay.yaml -o openapi.json watchtide.swagger.json
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	overlay := flag.String("overlay", "overlay.yaml", "JSON merge patch in YAML, applied to the converted document")
	out := flag.String("o", "openapi.json", "where to write the OpenAPI document")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "openapidoc: want one argument, the OpenAPI 2 document made of the proto")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *overlay, *out); err != nil {
		fmt.Fprintln(os.Stderr, "openapidoc:", err)
		os.Exit(1)
	}
}

func run(generatedPath, overlayPath, outPath string) error {
	generated, err := os.ReadFile(generatedPath)
	if err != nil {
		return err
	}
	overlay, err := os.ReadFile(overlayPath)
	if err != nil {
		return err
	}
	document, err := build(generated, overlay)
	if err != nil {
		return err
	}
	return os.WriteFile(outPath, document, 0o644)
}
