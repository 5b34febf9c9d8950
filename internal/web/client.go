package web

import (
	_ "embed"
	"net/http"
)

// The client as one module, and its types, made from web/client by make bundle, and committed.
// They are as old as the binary, so a page that imports them always has the version of its gateway.

//go:embed bundle/client.js
var clientModule []byte

//go:embed bundle/client.d.ts
var clientTypes []byte

// clientFiles returns the files of the client by their paths.
func clientFiles() map[string]file {
	module, types := newFile("client.js", clientModule), newFile("client.d.ts", clientTypes)
	module.header = map[string]string{"X-TypeScript-Types": "./client.d.ts"} // where Deno looks for them
	// By its extension, the file would be a video.
	types.header = map[string]string{"Content-Type": "text/typescript; charset=utf-8"}
	module.public, types.public = true, true
	return map[string]file{"/client.js": module, "/client.d.ts": types}
}

// Public reports whether pages of every origin may read what is served at a path: the client, which
// holds no data. Browsers load modules of other origins only with such a permission.
func Public(path string) bool { return served()[path].public }

// permit lets pages of every origin read an answer, unless the gateway has permitted it to the
// page's own origin, with credentials.
func permit(h http.Header) {
	if h.Get("Access-Control-Allow-Origin") == "" {
		h.Set("Access-Control-Allow-Origin", "*")
	}
}
