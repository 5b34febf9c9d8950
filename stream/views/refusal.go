package views

import "fmt"

// Refusal is a view that was not opened because a limit is reached.
//
// It must not be modified once handed over.
type Refusal struct {
	Reason string // one of the following
	Limit  int    // how many views there may be, or how many bytes they may take
}

// The reasons of a Refusal.
const (
	TooMany          = "views"        // too many views in all
	TooManyOfAClient = "client_views" // too many of one client
	NoMemory         = "view_memory"  // the views do not fit into their memory
)

// Error implements error.
func (r *Refusal) Error() string {
	switch r.Reason {
	case TooManyOfAClient:
		return fmt.Sprintf("the client has too many views: want at most %d", r.Limit)
	case NoMemory:
		return fmt.Sprintf("the views do not fit into their memory of %d bytes", r.Limit)
	}
	return fmt.Sprintf("there are too many views: want at most %d", r.Limit)
}
