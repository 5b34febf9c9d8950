package stream

// GoodbyeReason is why the server ends a stream on purpose.
type GoodbyeReason string

// The reasons to end a stream.
const (
	GoodbyeDraining     GoodbyeReason = "draining"
	GoodbyeMaxAge       GoodbyeReason = "max_age"
	GoodbyeOverloaded   GoodbyeReason = "overloaded"
	GoodbyeTokenExpired GoodbyeReason = "token_expired"
	GoodbyeRevoked      GoodbyeReason = "revoked"
	GoodbyeWatchRemoved GoodbyeReason = "watch_removed"
	// GoodbyeWatchReplaced: a watch of the same name is served instead.
	GoodbyeWatchReplaced GoodbyeReason = "watch_replaced"
	GoodbyeComplete      GoodbyeReason = "complete"
)
