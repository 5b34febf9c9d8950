package config

import (
	"slices"
	"strings"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/headers"
	"github.com/watchtide/watchtide/internal/jwt"
	"github.com/watchtide/watchtide/internal/source/consul"
	"github.com/watchtide/watchtide/internal/source/etcd"
	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	"github.com/watchtide/watchtide/internal/source/kubernetes"
	"github.com/watchtide/watchtide/internal/source/nats"
	"github.com/watchtide/watchtide/internal/source/postgres"
	"github.com/watchtide/watchtide/stream"
)

// texts are the kinds of text that a tag can name; "" is one without a name.
var texts = map[string]decode.Text{
	"":                 {Want: wantText, Valid: notEmpty},
	"algorithm":        oneOfThese(jwt.Algorithms),
	"audit file":       {Want: "the name of a file, or stderr", Valid: notEmpty, Use: auditFile},
	"claim":            {Want: "the path of a claim, such as sub or realm_access.roles", Valid: notEmpty},
	"collection":       {Want: oneOf(Collections), Use: collection, Parameter: &decode.Rule{}, Fits: isCollection},
	"compression":      oneOfThese(Compressions),
	"digest":           oneOfThese(Digests),
	"directory":        {Want: "the name of a directory", Valid: notEmpty, Use: (*decode.Decoder).Relative},
	"expression":       {Want: "an expression in quotation marks", Valid: notEmpty},
	"file":             {Want: decode.FileName.Want, Valid: notEmpty, Use: fileWithContent},
	"file of a store":  {Want: "the name of the file that keeps the store", Valid: notEmpty, Use: (*decode.Decoder).Relative},
	"file of a secret": {Want: decode.FileName.Want, Valid: notEmpty, Use: fileOfSecret},
	"forwarded header": oneOfThese(ForwardedHeaders),
	"host":             {Want: `a host name without a port, such as app.example.com, "*.example.com", or "*" for every name`, Valid: noError(headers.CheckHost)},
	"issuer":           {Want: jwt.WantURL, Valid: noError(jwt.CheckURL)},
	"kubeconfig":       {Want: "the name of a kubeconfig file", Valid: notEmpty, Use: relativeOrHome},
	"listen":           {Want: wantListen, Valid: ValidListen},
	"listen or off":    {Want: wantListen + "; off for none", Valid: func(s string) bool { return s == OperationsOff || ValidListen(s) }},
	"network":          {Want: `a network such as 10.0.0.0/8 or "2001:db8::/32", or an address`, Valid: decode.ValidNetwork},
	"values":           {Want: stream.WantValues, Valid: func(s string) bool { return s != "" && stream.Values(s).Check() == nil }},
	"journal":          oneOfThese([]string{JournalOn, JournalNone}),
	"no compression":   {Want: Uncompressed + "; without the key it is as in stream", Valid: func(s string) bool { return s == Uncompressed }},
	"origin":           {Want: "an origin as a browser sends it: https://app.example.com", Valid: headers.IsOrigin},
	"page header":      {Want: headers.WantPageHeader, Valid: headers.IsPageHeader},
	"printable":        {Want: "printable ASCII", Valid: decode.ValidMetadata},
	"replica":          {Want: "the address of an operations listener, such as http://10.0.0.7:8081, or dns+http://name:8081 for all addresses of a name; https for TLS", Valid: gateway.ValidReplica},
	"public url":       {Want: "the origin of the gateway, such as https://events.example.com; http only on loopback, since cookies could be read on the way", Valid: headers.IsSafeOrigin},
	"pump":             oneOfThese(Pumps),
	"tracing endpoint": {Want: WantTracingEndpoint, Valid: ValidTracingEndpoint},
	"tracing protocol": oneOfThese(TracingProtocols),
	"scope":            {Want: "a scope of OAuth, such as profile: printable ASCII without spaces, quotation marks and backslashes", Valid: validScope},
	"subject":          oneOfThese(Subjects),
	"filter":           {Want: wantText, Valid: notEmpty, Parameter: &decode.Rule{Escape: decode.CEL}},
	"order":            {Want: wantText, Valid: notEmpty, Parameter: &decode.Rule{Escape: decode.Name}},
	"labels":           {Want: wantText, Valid: notEmpty, Parameter: &decode.Rule{Escape: decode.Label}},
	"prefix":           {Want: wantText, Valid: notEmpty, Parameter: &decode.Rule{Escape: decode.Plain, Prefix: true}},
	"watch":            {Want: wantWatch, Valid: noError(stream.CheckWatchName), Parameter: &decode.Rule{Escape: decode.Plain}},

	"consul collection":    oneOfThese(consul.Collections),
	"consul consistency":   oneOfThese(consul.Consistencies),
	"consul http address":  {Want: consul.WantHTTPAddress, Valid: consul.ValidHTTPAddress},
	"consul datacenter":    {Want: consul.WantDatacenter, Valid: consul.ValidDatacenter},
	"consul service":       {Want: consul.WantService, Valid: consul.ValidService, Parameter: &decode.Rule{Escape: consulService}},
	"consul address":       {Want: consul.WantAddress, Valid: consul.ValidAddress},
	"consul prefix":        {Want: consul.WantNamePrefix, Valid: consul.ValidNamePrefix, Parameter: &decode.Rule{Escape: consulName, Prefix: true}},
	"consul tenancy":       {Want: consul.WantTenancy, Valid: consul.ValidTenancy, Parameter: &decode.Rule{Escape: consulName}},
	"consul type":          {Want: consul.WantType, Valid: validConsulType, Parameter: &decode.Rule{Escape: consulTypePart}},
	"etcd endpoint":        {Want: etcd.WantEndpoint, Valid: etcd.ValidEndpoint},
	"gateway url":          {Want: gatewaysource.WantURL, Valid: gatewaysource.ValidURL},
	"grpc address":         {Want: grpcsource.WantAddress, Valid: grpcsource.ValidAddress},
	"kubernetes group":     {Want: kubernetes.WantGroup, Valid: kubernetes.ValidName, Parameter: &decode.Rule{Escape: kubernetesName}},
	"kubernetes version":   {Want: kubernetes.WantVersion, Valid: validKubernetesName, Parameter: &decode.Rule{Escape: kubernetesName}},
	"kubernetes plural":    {Want: kubernetes.WantResource, Valid: validKubernetesName, Parameter: &decode.Rule{Escape: kubernetesName}},
	"namespace":            {Want: kubernetes.WantNamespace, Valid: kubernetes.ValidName, Parameter: &decode.Rule{Escape: kubernetesName}},
	"label selector":       textThat("a label selector", kubernetes.CheckLabelSelector, decode.Label),
	"field selector":       textThat("a field selector", kubernetes.CheckFieldSelector, fieldValue),
	"nats bucket":          {Want: nats.WantBucket, Valid: nats.ValidBucket, Parameter: &decode.Rule{Escape: natsName}},
	"nats keys":            {Want: nats.WantKeys, Valid: nats.ValidKeys, Parameter: &decode.Rule{Escape: natsToken}},
	"nats prefix":          {Want: nats.WantPrefix, Valid: nats.ValidPrefix},
	"nats url":             {Want: nats.WantURL, Valid: nats.ValidURL},
	"postgres column":      {Want: postgres.WantColumn, Valid: postgres.ValidColumn},
	"postgres publication": {Want: postgres.WantPublication, Valid: postgres.ValidPublication},
	"postgres slot":        {Want: postgres.WantSlot, Valid: postgres.ValidSlot},
	"postgres table":       {Want: postgres.WantTable, Valid: postgres.ValidTable, Parameter: &decode.Rule{Escape: postgresName}},
	"postgres url":         {Want: postgres.WantURL, Valid: postgres.ValidURL},
}

// kinds are the kinds that tags can name.
var kinds = decode.Kinds{Texts: texts, IsName: func(kind string) bool { return nameKinds[kind].Valid != nil }}

const (
	wantText   = "text (in quotation marks if it looks like a number)"
	wantWatch  = "a name of 1 to 64 letters, digits, '.', '_' or '-'"
	wantListen = `host:port, such as "127.0.0.1:8080", or ":8080" for every interface, with a port up to 65535`
)

func oneOfThese(words []string) decode.Text {
	return decode.Text{Want: oneOf(words), Valid: func(s string) bool { return slices.Contains(words, s) }}
}

func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// validScope reports whether a text is one scope (RFC 6749, section 3.3).
func validScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

func notEmpty(s string) bool { return s != "" }

func noError(check func(string) error) func(string) bool {
	return func(s string) bool { return check(s) == nil }
}

// textThat returns text that a function checks. Its error shows the text, so it is
// not reported if that came from the environment.
func textThat(want string, check func(string) error, escape func(string) (string, bool)) decode.Text {
	rule := &decode.Rule{Escape: escape}
	return decode.Text{Want: want, Parameter: rule, Fits: noError(check), Use: func(d *decode.Decoder, s decode.Scalar) string {
		err := check(s.Expanded)
		switch {
		case err != nil && s.Written == s.Expanded:
			d.Errorf(s.Value, "%v", err)
		case err != nil:
			d.Wrong(s, want)
		}
		return s.Expanded
	}}
}

func collection(d *decode.Decoder, s decode.Scalar) string {
	d.CheckWord(s, "this machine has no collection", Collections)
	return s.Expanded
}

func isCollection(s string) bool { return slices.Contains(Collections, s) }

func validConsulType(name string) bool {
	_, err := consul.ParseType(name)
	return err == nil
}

func validKubernetesName(s string) bool { return s != "" && kubernetes.ValidName(s) }
