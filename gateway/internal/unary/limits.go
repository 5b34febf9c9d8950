package unary

import (
	"time"
)

// MaxPageSize is the most resources in one page.
const MaxPageSize = 10000

// BodyTimeout is how long the whole body of a request may take to arrive, so that no
// client holds a connection with a body that never ends.
const BodyTimeout = 30 * time.Second
