module github.com/watchtide/watchtide/client

go 1.26.0

require (
	github.com/r3labs/sse/v2 v2.10.0
	go.uber.org/goleak v1.3.0
)

require (
	golang.org/x/net v0.61.0 // indirect
	gopkg.in/cenkalti/backoff.v1 v1.1.0 // indirect
)
