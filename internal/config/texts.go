package config

import (
	"slices"

	"github.com/watchtide/watchtide/gateway"
)

// text is a kind of text: what is wanted, in words that follow "want", and
// whether a text is that.
type text struct {
	want  string
	valid func(string) bool
}

// texts are the kinds of text that a tag can name; "" is one without a name.
var texts = map[string]text{
	"":                 {"text (in quotation marks if it looks like a number)", notEmpty},
	"auth":             {"none, which is all that there is yet: whoever reaches a listener may do everything", isAuthNone},
	"compression":      oneOfThese(Compressions),
	"forwarded header": oneOfThese(ForwardedHeaders),
	"host":             {`a host name without a port, such as app.example.com, "*.example.com", or "*" for every name`, validHost},
	"listen":           {wantListen, ValidListen},
	"listen or off":    {wantListen + "; off for none", validOperations},
	"network":          {`a network such as 10.0.0.0/8 or "2001:db8::/32", or an address`, validNetwork},
	"origin":           {"an origin as a browser sends it: https://app.example.com", validOrigin},
	"pump":             oneOfThese(Pumps),
}

const wantListen = `host:port, such as "127.0.0.1:8080", or ":8080" for every interface, with a port up to 65535`

func oneOfThese(words []string) text {
	return text{oneOf(words), func(s string) bool { return slices.Contains(words, s) }}
}

func notEmpty(s string) bool { return s != "" }

func isAuthNone(s string) bool { return s == AuthNone }

func validHost(s string) bool { return gateway.CheckHost(s) == nil }

func validOperations(s string) bool { return s == OperationsOff || ValidListen(s) }
