package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const everyKeyOfCluster = `
auth: { kubernetes: { source: prod, audiences: [watchtide, "https://events.example.com"], hold: 3m } }
sources:
  prod: { type: kubernetes, kubeconfig: kube/config }
watches:
  pods: { source: prod, version: v1, resource: pods }
`

func TestEveryKeyOfCluster(t *testing.T) {
	want := Cluster{Source: "prod", Audiences: []string{"watchtide", "https://events.example.com"}, Hold: 3 * time.Minute}
	if got := parse(t, everyKeyOfCluster).Auth.Kubernetes; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestClusterIsValidated(t *testing.T) {
	const sources = "\nsources: { prod: { type: kubernetes, kubeconfig: c }, local: { type: store } }"
	for text, want := range map[string]string{
		`{ source: prod }`:                                 "audiences is missing",
		`{ audiences: [a] }`:                               "source is missing",
		`{ source: prod, audiences: [] }`:                  "want at least one: the audience of the tokens",
		`{ source: pro, audiences: [a] }`:                  `there is no source "pro"; did you mean "prod"?`,
		`{ source: local, audiences: [a] }`:                `the source "local" is of type store; want one of type kubernetes`,
		`{ source: prod, audiences: [a], hold: 2h }`:       "want at most 1h",
		`{ source: prod, audiences: [a], hold: 10ms }`:     "want",
		`{ source: prod, audiences: [""] }`:                "want",
		`{ source: prod, audiences: [a], token: "x.y.z" }`: `unknown key "token"`,
	} {
		_, err := Parse("f", []byte("auth: { kubernetes: "+text+" }"+sources), fakeEnvironment())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
