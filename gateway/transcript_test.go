package gateway

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata with the gateway's current output")

// Each file in testdata is a script, a line of dashes, and every byte that its
// clients received. Only random parts are replaced: the retry hints.
//
//	watch NAME                  declare a watch; before anything else
//	config KEY VALUE            heartbeat, max_age or max_subscribers
//	NAME reset EPOCH            the source begins a snapshot
//	NAME upsert KEY REV VALUE   KEY may be quoted as in Go
//	NAME delete KEY REV
//	NAME commit REV
//	NAME status STATE REASON
//	NAME fail                   the source's connection ends
//	CLIENT get PATH [HEADER…]   a header is Name:value
//	CLIENT hangup
//	pass DURATION               and a tenth of a second
//	remove NAME
//	drain
//	# a comment
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			program, want, _ := strings.Cut(string(content), transcriptLine)
			var got string
			synctest.Test(t, func(t *testing.T) { got = playTranscript(t, program, "") })
			for _, accepts := range []string{"gzip", "zstd, gzip"} {
				var unzipped string
				synctest.Test(t, func(t *testing.T) { unzipped = playTranscript(t, program, accepts) })
				if unzipped != got {
					t.Errorf("got through %s:\n%s\nas it is:\n%s", accepts, unzipped, got)
				}
			}
			if *update {
				os.WriteFile(file, []byte(program+transcriptLine+got), 0o644)
				return
			}
			if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

const transcriptLine = "----------------------------------------------------------------\n"

var (
	randomRetry = regexp.MustCompile(`(retry: |"retry_ms":)(\d+)`)
	// A snapshot and the report that the watch is in sync are two steps of ingest: a
	// pump that wakes between them sends two flushes, and the id with the first.
	twoFlushes = regexp.MustCompile(`(id: .*\n)\n(event: status\ndata: .*"in_sync".*\n)\n`)
)

// player runs a script.
type player struct {
	*rig
	t       *testing.T
	accepts string
	config  Config
	watches []string
	clients map[string]*gatewaytest.Exchange
	streams map[string]string // the names of their streams, as in hello
	out     strings.Builder
}

func playTranscript(t *testing.T, program, accepts string) string {
	p := &player{t: t, accepts: accepts, clients: map[string]*gatewaytest.Exchange{}, streams: map[string]string{}, config: Config{StreamSettings: StreamSettings{Drain: -1, MaxAge: -1}, engine: gatewaytest.NewViews(t)}}
	for i, line := range strings.Split(program, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := p.play(strings.Fields(line)); err != nil {
			t.Fatalf("line %d: %s: %v", i+1, line, err)
		}
		p.listen(line)
	}
	out := randomRetry.ReplaceAllString(p.out.String(), "${1}RANDOM")
	out = streamID.ReplaceAllString(out, `"stream":"RANDOM"`)
	return twoFlushes.ReplaceAllString(out, "\n$2$1\n")
}

// listen records what the clients received since the last line.
func (p *player) listen(line string) {
	synctest.Wait()
	for _, name := range slices.Sorted(maps.Keys(p.clients)) {
		x := p.clients[name]
		text := x.Take()
		if found := streamID.FindStringSubmatch(text); found != nil {
			p.streams[name] = found[1]
		}
		if over, err := x.Over(); over {
			delete(p.clients, name)
			text += fmt.Sprintf("[%s: end of body, error %v]\n", name, err)
		}
		if text != "" {
			fmt.Fprintf(&p.out, ">>> %s\n%s", line, text)
		}
	}
}

func (p *player) play(words []string) error {
	arguments := words[1:]
	switch words[0] {
	case "watch":
		p.watches = append(p.watches, arguments...)
		return nil
	case "config":
		return p.configure(arguments[0], arguments[1])
	case "pass":
		d, err := time.ParseDuration(arguments[0])
		time.Sleep(d + 100*time.Millisecond) // with any pump: a shard may be late by two ticks
		return err
	case "remove":
		p.start().Registry.Remove(arguments[0])
		return nil
	case "drain":
		p.start().stop()
		return nil
	}
	p.start()
	if p.Sources[words[0]] != nil {
		return p.source(words[0], arguments)
	}
	return p.clientDoes(words[0], arguments)
}

// start starts the gateway, once everything is configured.
func (p *player) start() *rig {
	if p.rig == nil {
		p.rig = newRig(p.t, p.config, p.watches...)
		p.rig.accepts = p.accepts
	}
	return p.rig
}

func (p *player) configure(key, value string) (err error) {
	switch key {
	case "heartbeat":
		p.config.Heartbeat, err = time.ParseDuration(value)
	case "max_age":
		p.config.MaxAge, err = time.ParseDuration(value)
	case "max_subscribers":
		p.config.MaxSubscribers, err = strconv.Atoi(value)
	default:
		err = errors.New("unknown key")
	}
	return err
}

func (p *player) source(watch string, words []string) error {
	step, err := sourceStep(words)
	if err != nil {
		return err
	}
	p.Do(watch, step)
	return nil
}

var errLost = errors.New("connection lost")

func sourceStep(words []string) (func(stream.Sink) error, error) {
	arguments := words[1:]
	switch words[0] {
	case "reset":
		return func(s stream.Sink) error { return s.Reset(arguments[0]) }, nil
	case "upsert":
		revision, err := strconv.ParseUint(arguments[1], 10, 64)
		one := gatewaytest.Resource(unquoted(arguments[0]), revision, strings.Join(arguments[2:], " "))
		return func(s stream.Sink) error { return s.Upsert(one) }, err
	case "delete":
		revision, err := strconv.ParseUint(arguments[1], 10, 64)
		return func(s stream.Sink) error { return s.Delete(unquoted(arguments[0]), revision) }, err
	case "commit":
		revision, err := strconv.ParseUint(arguments[0], 10, 64)
		return func(s stream.Sink) error { return s.Commit(revision) }, err
	case "status":
		state, _ := stream.ParseState(arguments[0])
		return func(s stream.Sink) error { return s.Status(state, strings.Join(arguments[1:], " ")) }, nil
	case "fail":
		return func(stream.Sink) error { return errLost }, nil
	}
	return nil, errors.New("unknown step of a source")
}

func unquoted(key string) string {
	if s, err := strconv.Unquote(key); err == nil {
		return s
	}
	return key
}

func (p *player) clientDoes(name string, words []string) error {
	switch words[0] {
	case "get":
		var headers []string
		for _, h := range words[2:] {
			headers = append(headers, strings.Replace(h, ":", ": ", 1))
		}
		x := p.get(words[1], headers...)
		p.clients[name] = x
		fmt.Fprintf(&p.out, "[%s: %s, %s]\n", name, x.Status, x.Header.Get("Content-Type"))
		return nil
	case "move":
		return p.move(name, p.streams[words[1]], words[2])
	case "hangup":
		p.clients[name].Cancel()
		return nil
	}
	return errors.New("unknown step of a client")
}

// move moves the window of a stream, and waits until a shard has noticed. A client has the answer.
func (p *player) move(name, stream, query string) error {
	x := p.ask(stream, query)
	p.clients[name] = x
	fmt.Fprintf(&p.out, "[%s: %s, %s]\n", name, x.Status, x.Header.Get("Content-Type"))
	time.Sleep(slack())
	return nil
}
