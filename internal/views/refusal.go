package views

import "fmt"

// Reasons for which no view is opened.
const (
	TooMany          = "views"          // there are as many as there may be
	TooManyOfAClient = "client_views"   // the client has asked for as many as it may
	TooManyOrders    = "client_orders"  // and as many orders
	TooManyWindows   = "client_windows" // and as many windows of one order
	NoMemory         = "view_memory"    // views hold as much as they may
)

// Refusal is the error of Open if a limit is reached.
type Refusal struct {
	Reason string // one of the constants
	Limit  int    // number of views, or bytes
}

// Error says which limit is reached.
func (r *Refusal) Error() string {
	switch r.Reason {
	case TooManyOfAClient:
		return fmt.Sprintf("the client has asked for %d different views, and may not have more at once", r.Limit)
	case TooManyOrders:
		return fmt.Sprintf("the client has asked for %d different orders, and may not have more at once", r.Limit)
	case TooManyWindows:
		return fmt.Sprintf("the client has asked for %d different windows of one order, or for fewer with many resources, and may not have more at once", r.Limit)
	case NoMemory:
		return fmt.Sprintf("the views that clients ask for hold %d bytes, and may not hold more", r.Limit)
	}
	return fmt.Sprintf("there are %d views, and there may not be more at once", r.Limit)
}
