package peers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// sendfile is nginx that answers with a file of the resources of a snapshot, as the
// gateway sends them. The kernel copies from its cache to the sockets: a server
// that renders, or has it only in memory, can hardly be cheaper. No event follows.
func sendfile() Peer { return Peer{Name: "nginx, sendfile", Start: startSendfile} }

func startSendfile(ctx context.Context, o Options) (*Server, error) {
	dir, err := os.MkdirTemp(o.WorkDir, "snapshot")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the workers may run as another user
		return nil, err
	}
	if err := writeSnapshot(filepath.Join(dir, "snapshot"), o); err != nil {
		return nil, err
	}
	location := fmt.Sprintf("		root %q;\n		sendfile on;\n		tcp_nopush on;", dir)
	n, err := startNginx(ctx, o, nil, "", location)
	if err != nil {
		return nil, err
	}
	return &Server{Address: n.address, Snapshot: getAll("/snapshot"), PIDs: n.pids, Stop: n.stop}, nil
}

// writeSnapshot writes the snapshot that a gateway sends for Options.Resources.
func writeSnapshot(name string, o Options) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	for i := range o.Resources {
		const frame = "event: upsert\ndata: {\"type\":\"upsert\",\"watch\":%q,\"key\":%q,\"revision\":\"%d\",\"value\":%s}\n\n"
		fmt.Fprintf(out, frame, watch, key(i), i+1, resourceValue(i, o.ResourceBytes))
	}
	return out.Flush()
}
