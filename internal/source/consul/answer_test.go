package consul

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// collectionSamples are answers of Consul, and what is served of them.
var collectionSamples = []struct {
	config Config
	body   string
	want   []string
}{
	{Config{Resources: Resources{Collection: KV}, Prefix: "app/"},
		`[{"LockIndex":0,"Key":"app/","Flags":0,"Value":null,"CreateIndex":3,"ModifyIndex":3},
		{"LockIndex":1,"Key":"app/a","Flags":42,"Value":"MS4zMA==","Session":"adf4","CreateIndex":5,"ModifyIndex":9},
		{"LockIndex":0,"Key":"app/b","Flags":0,"Value":null,"CreateIndex":6,"ModifyIndex":6},
		{"LockIndex":0,"Key":"app/c/d","Flags":0,"Value":"/w==","CreateIndex":7,"ModifyIndex":7}]`,
		[]string{`a@9 1.30`, `b@6 ""`, `c/d@7 "/w==" base64`}},
	{Config{Resources: Resources{Collection: KV, Entries: true}, Prefix: "app/"},
		`[{"LockIndex":2,"Key":"app/a","Flags":18446744073709551615,"Value":"MS4zMA==","Session":"adf4","CreateIndex":5,"ModifyIndex":9},
		{"LockIndex":0,"Key":"app/b","Flags":0,"Value":null,"CreateIndex":6,"ModifyIndex":6},
		{"LockIndex":0,"Key":"app/c/d","Flags":0,"Value":"/w==","CreateIndex":7,"ModifyIndex":7}]`,
		[]string{`a@9 {"value":1.30,"flags":18446744073709551615,"session":"adf4","lock_index":2}`, `b@6 {"value":"","flags":0,"session":"","lock_index":0}`,
			`c/d@7 {"value":"/w==","encoding":"base64","flags":0,"session":"","lock_index":0}`}},
	{Config{Resources: Resources{Collection: KV}, Values: stream.TextValues},
		`[{"Key":"a","Value":"MS4zMA==","CreateIndex":5,"ModifyIndex":9}]`, []string{`a@9 "1.30"`}},
	{Config{Resources: Resources{Collection: Health, Service: "web"}}, fmt.Sprintf(webPage, "warning"),
		[]string{`web/n1/web-1@0 {"service":"web","node":"n1","id":"web-1","address":"10.0.0.1","port":80,"tags":["v1"],"meta":{"team":"a"},"status":"warning",` +
			`"checks":[{"id":"serfHealth","name":"Serf","status":"passing","output":""},{"id":"web","name":"HTTP","status":"warning","output":"200 OK"}]}`}},
	{Config{Resources: Resources{Collection: Health}},
		`[{"Node":"n1","Address":"10.0.0.1","Services":[{"ID":"a1","Service":"a","Address":"10.9.9.9","Port":1},{"ID":"b1","Service":"b"}],
			"Checks":[{"CheckID":"c","Status":"critical","ServiceID":"b1"},{"CheckID":"_node_maintenance","Status":"critical"}]},
		{"Node":"n2","PeerName":"other","Services":[{"ID":"a1","Service":"a"}]}, {"Node":"n3","Services":null,"Checks":null}]`,
		[]string{`a/n1/a1@0 {"service":"a","node":"n1","id":"a1","address":"10.9.9.9","port":1,"tags":[],"meta":{},"status":"maintenance","checks":[{"id":"_node_maintenance","name":"","status":"critical","output":""}]}`,
			`b/n1/b1@0 {"service":"b","node":"n1","id":"b1","address":"10.0.0.1","port":0,"tags":[],"meta":{},"status":"maintenance","checks":[{"id":"_node_maintenance","name":"","status":"critical","output":""},{"id":"c","name":"","status":"critical","output":""}]}`}},
	{Config{Resources: Resources{Collection: Services}}, `{"consul":[],"web":["v1","<b>","a"],"x":null}`,
		[]string{`consul@0 {"service":"consul","tags":[]}`, `web@0 {"service":"web","tags":["<b>","a","v1"]}`, `x@0 {"service":"x","tags":[]}`}},
	{Config{Resources: Resources{Collection: Nodes}}, `[{"ID":"40e4","Node":"n1","Address":"10.0.0.1","Datacenter":"dc1","TaggedAddresses":{"lan":"10.0.0.1"},"Meta":null,"ModifyIndex":7}]`,
		[]string{`n1@0 {"node":"n1","id":"40e4","address":"10.0.0.1","datacenter":"dc1","tagged_addresses":{"lan":"10.0.0.1"},"meta":{}}`}},
	{Config{Resources: Resources{Collection: Checks}}, `[{"Node":"n1","CheckID":"c","Name":"C","Status":"passing","Output":"ok","ServiceID":"web-1","ServiceName":"web","Type":"ttl"}]`,
		[]string{`n1/c@0 {"node":"n1","id":"c","name":"C","status":"passing","notes":"","output":"ok","service":"web","service_id":"web-1","type":"ttl"}`}},
	{Config{Resources: Resources{Collection: Intentions}},
		`[{"SourceName":"web","SourceNS":"default","SourcePartition":"default","DestinationName":"db","DestinationNS":"default","Action":"allow","Precedence":9,"Hash":"x"},
		{"SourceName":"*","SourcePeer":"east","DestinationName":"db","DestinationNS":"team","Precedence":8,"Permissions":[{"Action":"deny"}]}]`,
		[]string{`web/db@0 {"source":{"name":"web","namespace":"default","partition":"default"},"destination":{"name":"db","namespace":"default"},"action":"allow","precedence":9,"description":"","meta":{}}`,
			`*@east/team.db@0 {"source":{"name":"*","peer":"east"},"destination":{"name":"db","namespace":"team"},"permissions":[{"Action":"deny"}],"precedence":8,"description":"","meta":{}}`}},
}

// readBody reads an answer as that of a collection.
func readBody(c Config, body string, most int) (*answer, error) {
	c.HTTPAddress, c.MaxMessageBytes = "consul.test:8500", most
	c.setDefaults()
	a := newAPI(&c, &lines{}, func(error) {})
	out := &answer{}
	err := a.read(&http.Response{StatusCode: http.StatusOK, Header: http.Header{indexHeader: {"9"}}}, strings.NewReader(body), out)
	return out, err
}

// TestCollections: what is served of Consul's answers.
func TestCollections(t *testing.T) {
	for _, c := range collectionSamples {
		t.Run(c.config.Collection, func(t *testing.T) {
			a, err := readBody(c.config, c.body, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range a.items {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s@%d %s %s", i.key, i.revision, i.value, i.encoding)))
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if len(c.body) != int(a.bytes)-itemCost*len(a.items) {
				t.Errorf("%d bytes are charged for %d and %d items", a.bytes, len(c.body), len(a.items))
			}
		})
	}
}

// TestAnswersOfSomethingElse: what Consul does not answer is refused, and never half of it served.
func TestAnswersOfSomethingElse(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{}`, "as none of Consul does"},
		{`"a"`, "as none of Consul does"},
		{`<html>`, "invalid character"},
		{`[{"Key":"other/a","ModifyIndex":1}]`, `key "other/a": want one that begins with app/`},
		{`[{"Key":"app/a","ModifyIndex":-1}]`, "cannot unmarshal"},
		{`[{"Key":"app/a","ModifyIndex":1},`, "unexpected EOF"},
		{`[{"Key":"app/a","Value":"%%"}]`, "illegal base64"},
		{`[{"Key":"app/a","ModifyIndex":1},{"Key":"app/` + strings.Repeat("a", 1<<20) + `"}]`, "too large: the answer has more than 1048576 bytes"},
		{``, "unexpected EOF"},
	} {
		_, err := readBody(Config{Resources: Resources{Collection: KV}, Prefix: "app/"}, c.body, 1<<20)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 500 {
			t.Errorf("%.40s: error %.600v, want %q in it", c.body, err, c.want)
		}
	}
	if a, err := readBody(Config{Resources: Resources{Collection: Nodes}}, `null`, 1<<20); err != nil || len(a.items) > 0 {
		t.Errorf("null is read as %v, %v", a, err)
	}
}

// FuzzAnswer: whatever a server answers is refused, or is JSON with keys.
func FuzzAnswer(f *testing.F) {
	for n, c := range collectionSamples {
		f.Add(n, c.body)
	}
	f.Fuzz(func(t *testing.T, n int, body string) {
		if n < 0 || n >= len(collectionSamples) {
			return
		}
		a, err := readBody(collectionSamples[n].config, body, 1<<16)
		if err != nil {
			return
		}
		for _, i := range a.items {
			if i.key == "" || !json.Valid(i.value) || !stream.OneLine(i.value) {
				t.Fatalf("key %q, value %q", i.key, i.value)
			}
		}
	})
}
