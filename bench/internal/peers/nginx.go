package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"text/template"
	"time"
)

// nginx is a server of Debian's package of that name, with a worker for each
// core and a directory of its own.
type nginx struct {
	*process
	address string
	pids    []int
}

// nginxConfig is the common part of every nginx here; Location is the part that
// differs.
var nginxConfig = template.Must(template.New("nginx.conf").Parse(`{{range .Modules}}load_module {{.}};
{{end}}daemon off;
{{if .Root}}user root root;
{{end}}worker_processes {{.Workers}};
worker_rlimit_nofile {{.Descriptors}};
pid nginx.pid;
error_log stderr notice;
events { worker_connections {{.Connections}}; }
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	default_type text/event-stream;
{{.HTTP}}
	server {
		listen {{.Address}} reuseport backlog=4096;
		keepalive_requests 1000000000;
		keepalive_timeout 1h;
{{.Location}}
	}
}
`))

// nginxModules is where Debian puts modules.
const nginxModules = "/usr/lib/nginx/modules"

// startNginx starts nginx with the given contents of its http and server blocks.
func startNginx(ctx context.Context, o Options, modules []string, http, location string) (*nginx, error) {
	program, err := installed("nginx", "nginx")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	var config bytes.Buffer
	connections := o.Subscribers + 256 // for publishers, workers and files
	if err := nginxConfig.Execute(&config, map[string]any{
		"Modules": modules, "Root": os.Getuid() == 0, "Workers": runtime.NumCPU(),
		"Descriptors": connections + 64, "Connections": connections,
		"Address": address, "HTTP": http, "Location": location,
	}); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.WorkDir, "nginx")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, config.Bytes(), 0o644); err != nil {
		return nil, err
	}
	p, err := start(ctx, o, regexp.MustCompile(`start worker process \d+`), program, "-p", dir, "-c", file)
	if err != nil {
		return nil, err
	}
	n := &nginx{process: p, address: address}
	if n.pids, err = family(p, runtime.NumCPU()); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return n, nil
}

// installed finds a program of a Debian package.
func installed(program, debian string) (string, error) {
	for _, name := range []string{program, "/usr/sbin/" + program} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", missing(program, debian)
}

func missing(what, debian string) error {
	return fmt.Errorf("%s is %w: apt-get install %s", what, ErrMissing, debian)
}

// freeAddress returns an unused address of loopback, for programs that must
// be given one.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// family returns the process and its children, once there are as many as wanted.
func family(p *process, children int) ([]int, error) {
	pid := p.cmd.Process.Pid
	for began := time.Now(); ; {
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			return nil, fmt.Errorf("the workers of %s: %w", p.cmd.Path, err)
		}
		words := bytes.Fields(list)
		if len(words) >= children {
			pids := []int{pid}
			for _, w := range words {
				child, err := strconv.Atoi(string(w))
				if err != nil {
					return nil, fmt.Errorf("the workers of %s are %q", p.cmd.Path, list)
				}
				pids = append(pids, child)
			}
			return pids, nil
		}
		select {
		case <-p.ended:
			return nil, fmt.Errorf("%s ended before its workers began", p.cmd.Path)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Since(began) > patience {
			return nil, fmt.Errorf("%s has %d workers after %v: want %d", p.cmd.Path, len(words), patience, children)
		}
	}
}
