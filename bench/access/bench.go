package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// bench is one invocation.
type bench struct {
	plan
	process.Table
	dir       string // for the programs and their files; removed by close
	gateway   string // the program
	generator string // of load
}

func newBench(ctx context.Context, p plan) (b *bench, err error) {
	b = &bench{plan: p}
	if b.dir, err = os.MkdirTemp("", "access"); err != nil {
		return nil, err
	}
	if b.gateway, b.generator, err = process.Build(ctx, b.dir); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) close() { os.RemoveAll(b.dir) }

// configuration has a watch whose readers see the resources that a rule selects.
const configuration = `
http: { listen: "127.0.0.1:0" }
grpc: { listen: "127.0.0.1:0" }
operations: { listen: "127.0.0.1:0" }
auth: { tokens_file: %q }
roles:
  readers: { when: '"readers" in principal.groups' }
  writer: { when: 'principal.name == "writer"' }
sources: { local: { type: store } }
watches:
  many:
    source: local
    allow:
      - { role: readers, read: "value.n >= %d && value.n < %d" }
      - { role: writer, write: "true" }
`

// token returns the token of the i-th principal. The writer is not one of them.
func token(of any) string { return fmt.Sprintf("token-of-%v-%032d", of, 0) }

// prepare writes the tokens, and the rules with which readers see the resources from a given
// one on.
func (b *bench) prepare(from int) (file string, err error) {
	var tokens strings.Builder
	line := func(name any, group string) {
		fmt.Fprintf(&tokens, "%v sha256:%x %s\n", name, sha256.Sum256([]byte(token(name))), group)
	}
	line("writer", "writers")
	for i := range b.principals {
		line(i, "readers")
	}
	path := filepath.Join(b.dir, "tokens")
	if err := os.WriteFile(path, []byte(tokens.String()), 0o600); err != nil {
		return "", err
	}
	file = filepath.Join(b.dir, "gateway.yaml")
	return file, os.WriteFile(file, fmt.Appendf(nil, configuration, path, from, from+b.resources-b.differ), 0o644)
}

// write puts the resources into the watch.
func (b *bench) write(ctx context.Context, g *process.Gateway) error {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	const text = "runs behind the front proxy and is restarted by its unit when the probe has failed three times, and so on"
	for i := range b.resources {
		value := fmt.Appendf(nil, `{"n":%d,"id":"%040x","zone":"zone-%d","state":"passing","note":"%s"}`, i, uint64(i)*0x9e3779b97f4a7c15, i%3, text)
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, fmt.Sprintf("http://%s/v1/watches/many/resources/resource-%06d", g.HTTP, i), bytes.NewReader(value))
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token("writer"))
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		said, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode >= 300 {
			return fmt.Errorf("resource %d: %s: %s %w", i, answer.Status, said, err)
		}
	}
	return nil
}

// requests are the requests of all streams.
func (b *bench) requests() (all []load.Request) {
	for i := range b.streams {
		head := fmt.Sprintf("GET /v1/watches/many/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n", token(i%b.principals))
		all = append(all, load.Request{Bytes: []byte(head)})
	}
	return all
}
