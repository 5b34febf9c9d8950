package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"text/template"
	"time"
)

// pushpin is a proxy that holds streams open for an origin which is unaware of
// them: the origin answers a request with instructions in headers, and events are
// posted to the proxy (GRIP). It consists of four processes, one for each step of
// a request.
func pushpin() Peer { return Peer{Name: "Pushpin", Start: startPushpin} }

// pushpinPrograms are the parts of a Pushpin, without its runner, which would
// only start them, in the order in which they must start.
func pushpinPrograms(dir, address string) [][]string {
	config := "--config=" + filepath.Join(dir, "pushpin.conf")
	return [][]string{
		{"zurl", "--config=" + filepath.Join(dir, "zurl.conf")},
		{
			"condure", "--listen=" + address + ",stream", "--zclient-stream=ipc://" + dir + "/condure",
			// Debian's number: a worker without room left ends with all its connections.
			fmt.Sprint("--workers=", runtime.NumCPU()), "--stream-maxconn=50000",
		},
		{"pushpin-proxy", config},
		{"pushpin-handler", config},
	}
}

// pushpinInternal is Debian's configuration of the connections between the
// processes.
const pushpinInternal = "/usr/lib/pushpin/internal.conf"

// pushpinConfig removes the limit of messages per second: each delivery counts.
var pushpinConfig = template.Must(template.New("pushpin.conf").Parse(`[global]
include={{.Dir}}/internal.conf
rundir={{.Dir}}
ipc_prefix=

[proxy]
routesfile={{.Dir}}/routes

[handler]
push_in_spec=ipc://{{.Dir}}/push
push_in_http_addr=127.0.0.1
push_in_http_port={{.ControlPort}}
push_in_http_max_headers_size=10000
push_in_http_max_body_size=100000000
command_spec=ipc://{{.Dir}}/command
message_rate=1000000000
message_hwm=1000000000
`))

const zurlConfig = `[General]
in_spec=ipc://%[1]s/zurl-in
in_stream_spec=ipc://%[1]s/zurl-in-stream
out_spec=ipc://%[1]s/zurl-out
in_req_spec=ipc://%[1]s/zurl-req
defpolicy=allow
`

// pushpinServer is a running one.
type pushpinServer struct {
	origin    *http.Server
	processes []*process
	control   string // where events are posted
	post      bytes.Buffer
}

func startPushpin(ctx context.Context, o Options) (*Server, error) {
	for _, name := range []string{"zurl", "condure", "pushpin-proxy", "pushpin-handler"} {
		if _, err := installed(name, "pushpin"); err != nil {
			return nil, err
		}
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p := &pushpinServer{}
	if err := p.start(ctx, o, address); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	s := &Server{
		Address: address, Request: get("/events"), Marker: []byte("\ndata: "), InFlight: 32,
		Publish: p.publish, Stop: p.stop,
	}
	for _, one := range p.processes {
		s.PIDs = append(s.PIDs, one.cmd.Process.Pid)
	}
	return s, nil
}

func (p *pushpinServer) start(ctx context.Context, o Options, address string) error {
	dir, err := os.MkdirTemp(o.WorkDir, "pushpin")
	if err != nil {
		return err
	}
	if err := p.configure(dir); err != nil {
		return err
	}
	ready := regexp.MustCompile(` started$`)
	for _, program := range pushpinPrograms(dir, address) {
		// They print to their standard output.
		turned := append([]string{"-c", `exec "$@" >&2`, "sh"}, program...)
		one, err := start(ctx, o, ready, "sh", turned...)
		if err != nil {
			return err
		}
		p.processes = append(p.processes, one)
	}
	return answers(address, get("/events"))
}

// configure starts the origin and writes the configuration of the processes.
func (p *pushpinServer) configure(dir string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.origin = &http.Server{Handler: http.HandlerFunc(hold)}
	go p.origin.Serve(listener)
	p.control, err = freeAddress()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(p.control)
	if err != nil {
		return err
	}
	var config bytes.Buffer
	if err := pushpinConfig.Execute(&config, map[string]string{"Dir": dir, "ControlPort": port}); err != nil {
		return err
	}
	internal, err := os.ReadFile(pushpinInternal)
	if err != nil {
		return err
	}
	return writeFiles(dir, map[string]string{
		"pushpin.conf":  config.String(),
		"zurl.conf":     fmt.Sprintf(zurlConfig, dir),
		"routes":        "* " + listener.Addr().String() + "\n",
		"internal.conf": strings.NewReplacer("/var/run/zurl", dir, "{ipc_prefix}", "").Replace(string(internal)),
	})
}

func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// answers waits until a request is answered with 200: the processes find each
// other only after each has started.
func answers(address string, request []byte) error {
	for began := time.Now(); ; {
		said, err := ask(address, request)
		if err == nil && said == http.StatusOK {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%s answers %d, %v, after %v: want 200", address, said, err, patience)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func ask(address string, request []byte) (status int, err error) {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	_, err = fmt.Fscanf(c, "HTTP/1.1 %d", &status)
	return status, err
}

// stop ends the processes, the first one last.
func (p *pushpinServer) stop() error {
	var errs []error
	for _, one := range p.processes {
		errs = append(errs, one.stop())
	}
	if p.origin != nil {
		errs = append(errs, p.origin.Close())
	}
	return errors.Join(errs...)
}
