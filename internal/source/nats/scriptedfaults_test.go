package nats

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/faults"
)

// scriptedFault is a wrong or hostile server.
type scriptedFault struct {
	name, says string // see faults.Scripted
	script     func(s *scripted)
	options    []func(*Config)
}

// delivers has a new consumer receive this.
func delivers(deliver func(p *peer, sid, inbox string)) func(*scripted) {
	return func(s *scripted) {
		s.deliver = func(p *peer, inbox string) { deliver(p, p.sid(inbox), inbox) }
	}
}

// answers has requests for something answered with this.
func answers(about, body string) func(*scripted) {
	return func(s *scripted) {
		s.answer = func(p *peer, subject, reply string, _ []byte) bool {
			if !strings.Contains(subject, about) {
				return false
			}
			p.message(p.sid(reply), reply, "", "", body)
			return true
		}
	}
}

// endless sends a text again and again, until the client is gone.
func (p *peer) endless(begin, text string) {
	p.send(begin)
	for chunk := []byte(strings.Repeat(text, 1+(64<<10)/len(text))); ; {
		p.write.Lock()
		_, err := p.Write(chunk)
		p.write.Unlock()
		if err != nil {
			return
		}
	}
}

// greets with this, instead of INFO.
func greets(greet func(p *peer)) func(*scripted) { return func(s *scripted) { s.greet = greet } }

func scriptedFaults() []scriptedFault {
	value := strings.Repeat("1", 100_000)
	quick := func(c *Config) { c.StallAfter = MinStallAfter }
	holds := func(m ...scriptedMessage) func(*scripted) { return func(s *scripted) { s.messages = m } }
	return []scriptedFault{
		{name: "header of a writer that ends a consumer", script: holds(scriptedMessage{"a", "Status: 409\r\nDescription: Consumer Deleted", ""}, scriptedMessage{"b", "", "1"})},
		{name: "header of a writer that asks for a confirmation", script: holds(scriptedMessage{"a", "Status: 100\r\nNats-Consumer-Stalled: x", ""}, scriptedMessage{"b", "", "1"})},
		{name: "header of a writer that is none", script: holds(scriptedMessage{"a", "no colon", "1"})},
		{name: "greeting without end", says: "a greeting of more than", script: greets(func(p *peer) { p.endless(`INFO {"x":"`, "x") })},
		{name: "greeting of another protocol", says: "INFO", script: greets(func(p *peer) { p.send("SSH-2.0-OpenSSH_9.6\r\n") })},
		{name: "no greeting", says: "upstream stalled", script: greets(func(*peer) {}), options: []func(*Config){quick}},
		{name: "TLS that is not offered", says: "want no tls if the server speaks none", options: []func(*Config){func(c *Config) { c.URL = strings.Replace(c.URL, "nats:", "tls:", 1) }}},
		{name: "TLS that is required and not spoken", says: "tls:", script: greets(func(p *peer) { p.send(p.of.info(`,"tls_required":true`)); p.endless("", "hello ") })},
		{name: "line without end", says: "a line of more than", script: delivers(func(p *peer, _, _ string) { p.endless("-ERR '", "x") })},
		{name: "message of 100 TB announced", says: "want a message of at most", script: delivers(func(p *peer, sid, _ string) { p.send("MSG $KV.b.a " + sid + " 100000000000000\r\n") })},
		{name: "message of 64 MB announced", says: "too large: what is being loaded", script: delivers(func(p *peer, sid, _ string) { p.endless("MSG $KV.b.a "+sid+" 64000000\r\n", "x") })},
		{name: "messages without end", says: "too large: what is being loaded", script: delivers(func(p *peer, sid, _ string) {
			for i := 1; p.of.t.Context().Err() == nil && i < 10_000; i++ {
				p.message(sid, fmt.Sprintf("$KV.b.k%d", i), ackOf(i, 1_000_000), "", value)
			}
		})},
		{name: "messages for nobody without end", says: "too large: what is being loaded", script: delivers(func(p *peer, _, _ string) { p.endless("", "MSG x 99 5\r\nxxxxx\r\n") })},
		{name: "message that was not asked for", says: "that no consumer sent", script: delivers(func(p *peer, sid, _ string) { p.message(sid, "$KV.b.a", "", "", "1") })},
		{name: "message of another bucket", says: "want subjects that begin with", script: delivers(func(p *peer, sid, _ string) { p.message(sid, "$KV.c.a", ackOf(1, 1), "", "1") })},
		{name: "messages out of order", says: "message 2 arrived after message 0", script: delivers(func(p *peer, sid, _ string) { p.message(sid, "$KV.b.a", ackOf(2, 2), "", "1") })},
		{name: "messages that are lost", says: "5 messages were sent and 0 arrived", script: delivers(func(p *peer, sid, inbox string) {
			p.message(sid, inbox, "", "Status: 100\r\nNats-Last-Consumer: 5", "")
		})},
		{name: "message twice", says: "upstream sent something invalid", script: delivers(func(p *peer, sid, _ string) {
			p.message(sid, "$KV.b.a", ackOf(1, 1), "", "1")
			p.message(sid, "$KV.b.a", ackOf(1, 1), "", "1")
		})},
		{name: "heartbeat of nonsense", says: "want a number", script: delivers(func(p *peer, sid, inbox string) {
			p.message(sid, inbox, "", "Status: 100\r\nNats-Last-Consumer: -1", "")
		})},
		{name: "consumer that ends at once", says: "the server ended the consumer: 409 Leadership Change", script: delivers(func(p *peer, sid, inbox string) {
			p.message(sid, inbox, "", "Status: 409\r\nDescription: Leadership Change", "")
		})},
		{name: "consumer that sends nothing", says: "upstream stalled", script: delivers(func(*peer, string, string) {}), options: []func(*Config){quick}},
		{name: "total silence after the greeting", says: "upstream stalled", script: func(s *scripted) {
			s.answer = func(*peer, string, string, []byte) bool { return true }
		}, options: []func(*Config){quick}},
		{name: "slow consumer", says: "Slow Consumer", script: delivers(func(p *peer, _, _ string) { p.send("-ERR 'Slow Consumer'\r\n"); p.Close() })},
		{name: "answer that is not JSON", says: "invalid character", script: answers("STREAM.INFO", "<html>")},
		{name: "stream that is no bucket", says: "is not a bucket", script: answers("STREAM.INFO", `{"config":{"name":"KV_b","subjects":["x"]},"created":"2026-01-01T00:00:00Z","state":{}}`)},
		{name: "no JetStream", says: "want a server with JetStream", script: func(s *scripted) {
			s.answer = func(p *peer, _, reply string, _ []byte) bool {
				p.message(p.sid(reply), reply, "", "Status: 503", "")
				return true
			}
		}},
	}
}

// TestScriptedFaults: of a wrong or hostile server, a watch says what is wrong, or is
// in sync. It never takes more memory than it may.
func TestScriptedFaults(t *testing.T) {
	for _, fault := range scriptedFaults() {
		t.Run(fault.name, func(t *testing.T) {
			s := newScripted(t, fault.script)
			c := Config{URL: "nats://" + s.addr(), Bucket: "b", PollInterval: time.Hour}
			for _, o := range fault.options {
				o(&c)
			}
			source, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			faults.Scripted{Source: "nats", Fault: fault.name, Says: fault.says}.Run(t, source)
		})
	}
}
