package watch

import (
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
)

// The settings of a watch, and what its readers use.
type (
	// Retention bounds how far back readers can resume.
	Retention = log.Retention
	// Ceiling is an amount of memory that watches share.
	Ceiling = memory.Ceiling
	// SubscribeOptions say what a reader has already, and what it is to be sent.
	SubscribeOptions = log.SubscribeOptions
	// Subscription is the cursor of one reader, for one goroutine.
	Subscription = log.Subscription
	// Batch has the events of one call of Subscription.Next.
	Batch = log.Batch
	// Snapshot is the state at one revision.
	Snapshot = log.Snapshot
	// Page is a part of a Snapshot.
	Page = log.Page
)

// NewCeiling returns a ceiling of an amount of bytes; 0: none.
func NewCeiling(bytes int64) *Ceiling { return memory.NewCeiling(bytes) }
