//go:build servers

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/faults"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// TestFaults subjects the source to the faults of an API server and of the
// connection to it.
func TestFaults(t *testing.T) {
	k := ownCluster(t).kind(true)
	proxy := realserver.NewProxy(t, k.server.Addr())
	source := mustNew(t, k.configAt(proxy.Addr()))
	w := writer{k}
	empty, kept := k.backup(), ""
	faults.Run(t, &faults.Rig{
		Name: "kubernetes", Source: source, Proxy: proxy,
		Put: w.put, Delete: w.delete, List: w.list,
		Kill: k.server.Kill, Restart: k.server.Restart,
		Pause: k.server.Pause, Resume: k.server.Resume,
		Wipe: func() error { k.wipe(); return nil },
		More: []faults.Fault{
			{Name: "restore of an empty backup", Wipes: true, Broken: true, Inject: func() error { k.restore(empty); return nil }},
			{Name: "stopped for a backup", Broken: true, Inject: func() error { kept = k.backup(); return nil }},
			{Name: "restore of a backup", Wipes: true, Broken: true, Inject: func() error { k.restore(kept); return nil }},
			{Name: "cut, and history lost meanwhile", Gone: true,
				Inject: func() error { proxy.Refuse(); proxy.Cut(); return nil },
				Heal:   func() error { err := k.server.Restart(); proxy.Heal(); return err }},
		},
		Notice: k.config().StallAfter + time.Second,
		Key:    func(i int) string { return fmt.Sprintf("default/%c.%02d", 'a'+i%3, i) },
		Close: func() {
			k.server.Kill()
			source.Close()
			k.http.CloseIdleConnections()
		},
	})
}

// writer is the upstream for the harness: it returns the resources that the source
// must show.
type writer struct{ *kind }

func (w writer) put(ctx context.Context, key, value string) (stream.Resource, error) {
	answer, err := w.kind.put(ctx, "default", path.Base(key), value)
	if err != nil {
		return stream.Resource{}, err
	}
	return parseObject([]byte(answer), typeMeta{})
}

// delete returns the revision of the deletion. The server does not report it,
// but there is no other writer, so it is the server's revision afterwards.
func (w writer) delete(ctx context.Context, key string) (uint64, error) {
	if err := w.kind.delete(ctx, "default", path.Base(key)); err != nil {
		return 0, err
	}
	_, revision, err := w.list(ctx)
	return revision, err
}

func (w writer) list(ctx context.Context) (all []stream.Resource, revision uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answer, code, err := w.tryWithin(ctx, http.MethodGet, w.collection(""), "")
	if err == nil && code != http.StatusOK {
		err = errors.New(answer)
	}
	if err != nil {
		return nil, 0, err
	}
	p := &pageDecoder{d: json.NewDecoder(strings.NewReader(answer)), done: func() {}}
	p.each = func(raw json.RawMessage, of typeMeta) error {
		r, err := parseObject(raw, of)
		all = append(all, r)
		return err
	}
	meta, err := p.decode()
	if err == nil {
		revision, err = parseRevision(meta.ResourceVersion)
	}
	return all, revision, err
}
