package nats

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/watchtide/watchtide/stream"
)

// ack is a consumer's reply subject of a message: of this stream and consumer,
// delivered once, sequence 7, the third delivery, at 5 ns, 2 to come.
const ack = "$JS.ACK.KV_b.c.1.7.3.5.2"

// sent is a message as the server sends it.
func sent(subject, reply, data string, header ...string) *nats.Msg {
	m := &nats.Msg{Subject: subject, Reply: reply, Data: []byte(data), Sub: &nats.Subscription{}}
	for i := 0; i < len(header); i += 2 {
		if m.Header == nil {
			m.Header = nats.Header{}
		}
		m.Header.Set(header[i], header[i+1])
	}
	return m
}

func TestRead(t *testing.T) {
	at := delivery{number: 3, sequence: 7, pending: 2, time: 5, key: "a.b"}
	with := func(change func(*delivery)) delivery {
		d := at
		change(&d)
		return d
	}
	gone := with(func(d *delivery) { d.kind = deleted })
	text := with(func(d *delivery) { d.value = []byte(`"x y"`) })
	for name, test := range map[string]struct {
		message *nats.Msg
		want    delivery
	}{
		"JSON":            {sent("$KV.b.a.b", ack, `{"n": 1}`), with(func(d *delivery) { d.value = []byte(`{"n": 1}`) })},
		"text":            {sent("$KV.b.a.b", ack, "x y"), text},
		"nothing":         {sent("$KV.b.a.b", ack, ""), with(func(d *delivery) { d.value = []byte(`""`) })},
		"bytes":           {sent("$KV.b.a.b", ack, "\xff"), with(func(d *delivery) { d.value, d.encoding = []byte(`"/w=="`), stream.Base64 })},
		"deleted":         {sent("$KV.b.a.b", ack, "", headerOperation, "DEL"), gone},
		"purged":          {sent("$KV.b.a.b", ack, "", headerOperation, "PURGE"), gone},
		"too old":         {sent("$KV.b.a.b", ack, "", headerMarker, "MaxAge"), gone},
		"put by name":     {sent("$KV.b.a.b", ack, "x y", headerOperation, "PUT"), text},
		"another header":  {sent("$KV.b.a.b", ack, "x y", "X-Trace", "1"), text},
		"in a batch":      {sent("$KV.b.a.b", ack, "x y", headerBatch, "1"), with(func(d *delivery) { d.value, d.part = []byte(`"x y"`), true })},
		"ends a batch":    {sent("$KV.b.a.b", ack, "x y", headerBatch, "1", headerBatchEnd, "1"), text},
		"with the domain": {sent("$KV.b.a.b", "$JS.ACK.hub.hash.KV_b.c.1.7.3.5.2.x", "x y"), text},
		"heartbeat":       {sent("inbox", "", "", headerStatus, "100", headerLast, "9"), delivery{kind: heartbeat, number: 9}},
		"flow control":    {sent("inbox", "$JS.FC.1", "", headerStatus, "100"), delivery{kind: heartbeat, confirm: "$JS.FC.1"}},
		"stalled":         {sent("inbox", "", "", headerStatus, "100", headerLast, "9", headerStalled, "$JS.FC.2"), delivery{kind: heartbeat, number: 9, confirm: "$JS.FC.2"}},

		// A writer may set the server's headers.
		"status by a writer":       {sent("$KV.b.a.b", ack, "", headerStatus, "409", "Description", "no"), with(func(d *delivery) { d.value = []byte(`""`) })},
		"flow control by a writer": {sent("$KV.b.a.b", ack, "", headerStatus, "100", headerStalled, "secret"), with(func(d *delivery) { d.value = []byte(`""`) })},
		"marker by a writer":       {sent("$KV.b.a.b", ack, "x y", headerMarker, "MaxAge"), text},
	} {
		if got := read(test.message, "inbox", "$KV.b.", stream.AnyValues); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: read %+v, want %+v", name, got, test.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		message *nats.Msg
		want    string
		invalid bool
	}{
		"of no consumer":       {sent("$KV.b.a", "", "1"), `a message on "$KV.b.a" that no consumer sent`, true},
		"of another kind":      {sent("$KV.b.a", "$JS.ACK.x", "1"), "that no consumer sent", true},
		"of another bucket":    {sent("$KV.c.a", ack, "1"), `want subjects that begin with "$KV.b."`, true},
		"of no key":            {sent("$KV.b.", ack, "1"), "want subjects", true},
		"of sequence 0":        {sent("$KV.b.a", "$JS.ACK.KV_b.c.1.0.3.5.2", "1"), "sequences from 1", true},
		"heartbeat of nothing": {sent("inbox", "", "", headerStatus, "100", headerLast, "x"), `a heartbeat with Nats-Last-Consumer "x"`, true},
		"the end":              {sent("inbox", "", "", headerStatus, "409", "Description", "Consumer Deleted"), "the server ended the consumer: 409 Consumer Deleted", false},
	} {
		got := read(test.message, "inbox", "$KV.b.", stream.AnyValues)
		if got.kind != broken || !strings.Contains(got.err.Error(), test.want) || errors.Is(got.err, stream.ErrInvalid) != test.invalid {
			t.Errorf("%s: read %+v, want %s", name, got, test.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("$KV.b.a", ack, "", "", []byte("1"))
	f.Add("$KV.b.a.b", "$JS.ACK.hub.hash.KV_b.c.1.7.3.5.2.x", headerOperation, "DEL", []byte{})
	f.Add("inbox", "", headerStatus, "100", []byte{})
	f.Add("$KV.b.", "$JS.ACK.KV_b.c.1.0.3.5.2", headerMarker, "MaxAge", []byte("\xff"))
	f.Fuzz(func(t *testing.T, subject, reply, header, value string, data []byte) {
		m := sent(subject, reply, string(data), header, value)
		d := read(m, "inbox", "$KV.b.", stream.AnyValues)
		switch d.kind {
		case broken:
			if d.err == nil {
				t.Error("broken without a reason")
			}
		case written, deleted:
			if d.key == "" || d.sequence == 0 || subject != "$KV.b."+d.key {
				t.Errorf("read %+v of subject %q", d, subject)
			}
		}
		if _, ok := stream.CompactJSON(d.value); d.kind == written && !ok {
			t.Errorf("value %q is not JSON", d.value)
		}
	})
}

func TestReadMessage(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for answer, test := range map[string]struct {
		want message
		err  string
	}{
		`{"message":{"subject":"$KV.b.a","seq":7,"time":"2026-01-02T03:04:05.000000006Z"}}`: {message{sequence: 7, time: at, subject: "$KV.b.a"}, ""},
		`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`:          {message{}, ""},
		`{"error":{"code":503,"err_code":10008,"description":"no leader"}}`:                 {message{}, "no leader"},
		`{}`:              {message{}, "has no message"},
		`{"message":{}}`:  {message{}, "has no message"},
		`[]`:              {message{}, "cannot be read"},
		`{"message":null`: {message{}, "cannot be read"},
	} {
		got, err := readMessage([]byte(answer))
		if got.sequence != test.want.sequence || got.subject != test.want.subject || !got.time.Equal(test.want.time) || (err == nil) != (test.err == "") {
			t.Errorf("%s: read %+v, %v", answer, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: error %v, want %s", answer, err, test.err)
		}
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte(`{"message":{"seq":7,"time":"2026-01-02T03:04:05Z"}}`))
	f.Add([]byte(`{"error":{"code":404,"err_code":10037}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if m, err := readMessage(answer); err != nil && m.sequence != 0 {
			t.Errorf("read %+v with error %v", m, err)
		}
	})
}
