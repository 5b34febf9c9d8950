package doctor

import "strings"

// Check is the name of one thing that is examined.
type Check string

// The checks, in the order in which they are reported.
const (
	Connection  Check = "connection"
	Certificate Check = "certificate"
	Host        Check = "host"
	Credentials Check = "credentials"
	Gateway     Check = "gateway"
	HTTP        Check = "http"
	Clock       Check = "clock"
	Address     Check = "address"
	CORS        Check = "cors"
	Replicas    Check = "replicas"
	Resume      Check = "resume"
	Buffering   Check = "buffering"
	Incremental Check = "incremental"
	Compression Check = "compression"
	Heartbeats  Check = "heartbeats"
	Idle        Check = "idle"
	Duration    Check = "duration"
	Cookies     Check = "cookies"
	State       Check = "state" // of the machine, and not of the way
)

// Checks returns all checks.
func Checks() []Check {
	return []Check{
		Connection, Certificate, Host, Credentials, Gateway, HTTP, Clock, Address, CORS, Replicas,
		Resume, Buffering, Incremental, Compression, Heartbeats, Idle, Duration, Cookies, State,
	}
}

// Result is how a check came out.
type Result string

// The results.
const (
	OK      Result = "ok"
	Problem Result = "problem"
	Unknown Result = "unknown" // it could not be examined, and Found says why
)

// Finding is what one check found.
type Finding struct {
	Check  Check  `json:"check"`
	Result Result `json:"result"`
	// Found is a sentence without its full stop.
	Found string `json:"found"`
	// Mend says what to do about a problem; "": it is no problem.
	Mend string `json:"mend,omitempty"`
}

// hide replaces a text that must not be printed; "": there is none.
func (f *Finding) hide(secret, by string) {
	if secret != "" {
		f.Found = strings.ReplaceAll(f.Found, secret, by)
		f.Mend = strings.ReplaceAll(f.Mend, secret, by)
	}
}

// maxText is the most bytes of a text from elsewhere that are shown.
const maxText = 200

// shortened returns the beginning of a text from elsewhere.
func shortened(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
