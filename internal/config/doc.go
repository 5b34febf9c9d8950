// Package config reads the configuration file of the gateway.
//
// The file is YAML. It is read strictly. Errors are: a key that is unknown, duplicate
// or misplaced, a value of the wrong type, a watch of an undeclared source. All errors
// of a file are reported together, each with file, line, column, what is wrong and,
// where there is one, the nearest right word.
//
//	http:    { listen: "127.0.0.1:8080", tls: { cert_file: gw.pem, key_file: gw.key }, allowed_origins: ["https://app.example.com"] }
//	grpc:    { listen: "127.0.0.1:8082" }
//	stream:  { heartbeat: 15s, history: { max_age: 10m, max_deletes: 100000 } }
//	metrics: { enabled: true }
//	sources:
//	  local:   { type: store, max_bytes: 1GiB }
//	  machine: { type: host, interval: 2s }
//	  backend: { type: grpc, address: "dns:///backend:9000", metadata_files: { authorization: /run/secrets/backend } }
//	watches:
//	  notes:     { source: local }
//	  processes: { source: machine, collection: processes }
//	  services:  { source: backend, watch: services, prime: false, linger: 30s }
//
// The types of this package, starting with Config, describe each key. A new key is a
// field with a tag that names the key, its limits and its kind of text; decode.Tag lists
// the options, texts the kinds. Conditions on several keys are in the check method of
// their section. Defaults are in parentheses; one that is not given is defined by the
// package that uses the value.
//
// # Values
//
// Durations are a number and a unit: 500ms, 15s, 10m, 1h30m. Numbers of bytes are a
// whole number, alone or with one of the units KiB, MiB and GiB. Where zero would be
// meaningless, it is rejected.
//
// In a value (not in a key) ${NAME} is replaced by the environment variable NAME; an
// unset one is an error. $${ stands for a literal ${. The replacement is text, never
// YAML, and never appears in an error. Inside {} and [] YAML requires quotation marks
// around it: { listen: "${HOST}:8080" }.
//
// Anchors and aliases work as in YAML; merge keys (<<) do not.
//
// Credentials are not written in the file: metadata_files and key_file name the files
// that hold them, and metadata rejects names that are known to carry credentials.
package config
