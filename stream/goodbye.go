package stream

// GoodbyeReason is why the server ends a stream on purpose.
type GoodbyeReason string

// Why a stream ends.
const (
	GoodbyeDraining     GoodbyeReason = "draining"
	GoodbyeMaxAge       GoodbyeReason = "max_age"
	GoodbyeOverloaded   GoodbyeReason = "overloaded"
	GoodbyeTokenExpired GoodbyeReason = "token_expired"
	GoodbyeRevoked      GoodbyeReason = "revoked"
	GoodbyeWatchRemoved GoodbyeReason = "watch_removed"
	GoodbyeComplete     GoodbyeReason = "complete"
)
