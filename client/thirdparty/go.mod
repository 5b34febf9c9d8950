module github.com/watchtide/watchtide/client/thirdparty

go 1.26.0

// What is tested is what lies around this folder.
replace (
	github.com/watchtide/watchtide => ../..
	github.com/watchtide/watchtide/client => ../../client
)

require (
	github.com/launchdarkly/eventsource v1.11.0
	github.com/r3labs/sse/v2 v2.10.0
	github.com/tmaxmax/go-sse v0.12.0
	github.com/watchtide/watchtide v0.0.0
	go.uber.org/goleak v1.3.0
	gopkg.in/cenkalti/backoff.v1 v1.1.0
)

require (
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
