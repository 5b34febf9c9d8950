package config

import (
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/config/internal/parameter"
	"github.com/watchtide/watchtide/internal/hosts"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/source/consul"
	"github.com/watchtide/watchtide/stream/source/etcd"
	gatewaysource "github.com/watchtide/watchtide/stream/source/gateway"
	grpcsource "github.com/watchtide/watchtide/stream/source/grpc"
	"github.com/watchtide/watchtide/stream/source/kubernetes"
	"github.com/watchtide/watchtide/stream/source/nats"
)

// text is a kind of text.
type text struct {
	want  string                        // in words that follow "want"
	valid func(string) bool             // nil: any text is valid
	use   func(*decoder, scalar) string // converts the text for the field; nil: the text itself

	parameter *parameter.Rule   // how a parameter of a template stands in the text; nil: not at all
	fits      func(string) bool // reports whether a text with parameters filled in is valid; nil: as valid does
}

// allows reports whether a text in which parameters have been filled in is valid.
func (k text) allows(text string) bool {
	if k.fits != nil {
		return k.fits(text)
	}
	return k.valid == nil || k.valid(text)
}

// texts are the kinds of text that a tag can name; "" is one without a name.
var texts = map[string]text{
	"":                 {want: wantText, valid: notEmpty},
	"auth":             {want: "none, which is all that there is yet: whoever reaches a listener may do everything", valid: isAuthNone},
	"collection":       {want: oneOf(Collections), use: (*decoder).collection, parameter: &parameter.Rule{}, fits: isCollection},
	"compression":      oneOfThese(Compressions),
	"directory":        {want: "the name of a directory", valid: notEmpty, use: (*decoder).relative},
	"file":             {want: wantFile, valid: notEmpty, use: (*decoder).fileWithContent},
	"file of a secret": {want: wantFile, valid: notEmpty, use: (*decoder).fileOfSecret},
	"forwarded header": oneOfThese(ForwardedHeaders),
	"host":             {want: `a host name without a port, such as app.example.com, "*.example.com", or "*" for every name`, valid: noError(hosts.Check)},
	"kubeconfig":       {want: "the name of a kubeconfig file", valid: notEmpty, use: (*decoder).relativeOrHome},
	"listen":           {want: wantListen, valid: ValidListen},
	"listen or off":    {want: wantListen + "; off for none", valid: func(s string) bool { return s == OperationsOff || ValidListen(s) }},
	"network":          {want: `a network such as 10.0.0.0/8 or "2001:db8::/32", or an address`, valid: validNetwork},
	"origin":           {want: "an origin as a browser sends it: https://app.example.com", valid: hosts.IsOrigin},
	"printable":        {want: "printable ASCII", valid: validMetadata},
	"pump":             oneOfThese(Pumps),
	"filter":           {want: wantText, valid: notEmpty, parameter: &parameter.Rule{Escape: parameter.CEL}},
	"labels":           {want: wantText, valid: notEmpty, parameter: &parameter.Rule{Escape: parameter.Label}},
	"prefix":           {want: wantText, valid: notEmpty, parameter: &parameter.Rule{Escape: parameter.Plain, Prefix: true}},
	"watch":            {want: wantWatch, valid: noError(stream.CheckWatchName)},
	"upstream watch":   {want: wantWatch, valid: noError(stream.CheckWatchName), parameter: &parameter.Rule{Escape: parameter.Plain}},

	"consul address":     {want: consul.WantAddress, valid: consul.ValidAddress},
	"consul prefix":      {want: consul.WantNamePrefix, valid: consul.ValidNamePrefix, parameter: &parameter.Rule{Escape: consulName, Prefix: true}},
	"consul tenancy":     {want: consul.WantTenancy, valid: consul.ValidTenancy, parameter: &parameter.Rule{Escape: consulName}},
	"consul type":        {want: consul.WantType, valid: validConsulType, parameter: &parameter.Rule{Escape: consulTypePart}},
	"etcd endpoint":      {want: etcd.WantEndpoint, valid: etcd.ValidEndpoint},
	"gateway url":        {want: gatewaysource.WantURL, valid: gatewaysource.ValidURL},
	"grpc address":       {want: grpcsource.WantAddress, valid: grpcsource.ValidAddress},
	"kubernetes group":   {want: kubernetes.WantGroup, valid: kubernetes.ValidName, parameter: &parameter.Rule{Escape: kubernetesName}},
	"kubernetes version": {want: kubernetes.WantVersion, valid: validKubernetesName, parameter: &parameter.Rule{Escape: kubernetesName}},
	"kubernetes plural":  {want: kubernetes.WantResource, valid: validKubernetesName, parameter: &parameter.Rule{Escape: kubernetesName}},
	"namespace":          {want: kubernetes.WantNamespace, valid: kubernetes.ValidName, parameter: &parameter.Rule{Escape: kubernetesName}},
	"label selector":     textThat("a label selector", kubernetes.CheckLabelSelector, parameter.Label),
	"field selector":     textThat("a field selector", kubernetes.CheckFieldSelector, fieldValue),
	"nats bucket":        {want: nats.WantBucket, valid: nats.ValidBucket, parameter: &parameter.Rule{Escape: natsName}},
	"nats keys":          {want: nats.WantKeys, valid: nats.ValidKeys, parameter: &parameter.Rule{Escape: natsToken}},
	"nats prefix":        {want: nats.WantPrefix, valid: nats.ValidPrefix},
	"nats url":           {want: nats.WantURL, valid: nats.ValidURL},
}

const (
	wantText   = "text (in quotation marks if it looks like a number)"
	wantWatch  = "a name of 1 to 64 letters, digits, '.', '_' or '-'"
	wantListen = `host:port, such as "127.0.0.1:8080", or ":8080" for every interface, with a port up to 65535`
	wantFile   = "the name of a file"
)

func oneOfThese(words []string) text {
	return text{want: oneOf(words), valid: func(s string) bool { return slices.Contains(words, s) }}
}

func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func notEmpty(s string) bool { return s != "" }

func isAuthNone(s string) bool { return s == AuthNone }

func noError(check func(string) error) func(string) bool {
	return func(s string) bool { return check(s) == nil }
}

// textThat returns text that a function checks. Its error shows the text, so it is
// not reported if that came from the environment.
func textThat(want string, check func(string) error, escape func(string) (string, bool)) text {
	rule := &parameter.Rule{Escape: escape}
	return text{want: want, parameter: rule, fits: noError(check), use: func(d *decoder, s scalar) string {
		err := check(s.expanded)
		switch {
		case err != nil && s.written == s.expanded:
			d.errorf(s.value, "%v", err)
		case err != nil:
			d.wrong(s, want)
		}
		return s.expanded
	}}
}

func (d *decoder) collection(s scalar) string {
	d.checkWord(s, "this machine has no collection", Collections)
	return s.expanded
}

func isCollection(s string) bool { return slices.Contains(Collections, s) }

func validConsulType(name string) bool {
	_, err := consul.ParseType(name)
	return err == nil
}

func validKubernetesName(s string) bool { return s != "" && kubernetes.ValidName(s) }
