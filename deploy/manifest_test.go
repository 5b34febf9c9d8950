// Package deploy_test checks the manifests of this directory against the code
// that they run: they are documentation that people apply without reading it.
package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/goccy/go-yaml"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream/watch"
)

// object is the part of a Kubernetes object that the tests read.
type object struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Data map[string]string `yaml:"data"`
	Spec struct {
		Ports    []servicePort `yaml:"ports"`
		Template struct {
			Spec pod `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type servicePort struct {
	Name       string `yaml:"name"`
	TargetPort string `yaml:"targetPort"`
}

type pod struct {
	TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
	Containers                    []container `yaml:"containers"`
}

type container struct {
	Args           []string        `yaml:"args"`
	Ports          []containerPort `yaml:"ports"`
	ReadinessProbe probe           `yaml:"readinessProbe"`
	LivenessProbe  probe           `yaml:"livenessProbe"`
	VolumeMounts   []struct {
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type containerPort struct {
	Name          string `yaml:"name"`
	ContainerPort int    `yaml:"containerPort"`
}

type probe struct {
	HTTPGet struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	} `yaml:"httpGet"`
}

func objects(t *testing.T) map[string]object {
	t.Helper()
	raw, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]object{}
	for d := yaml.NewDecoder(bytes.NewReader(raw)); ; {
		var o object
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		// Of several Services, the first is the one that clients use.
		if _, known := out[o.Kind]; !known {
			out[o.Kind] = o
		}
	}
}

func deployed(t *testing.T) container {
	t.Helper()
	containers := objects(t)["Deployment"].Spec.Template.Spec.Containers
	if len(containers) != 1 {
		t.Fatalf("the Deployment has %d containers, want one", len(containers))
	}
	return containers[0]
}

const configFile = "watchtide.yaml"

func configuration(t *testing.T) *config.Config {
	t.Helper()
	c, err := config.Parse(configFile, []byte(objects(t)["ConfigMap"].Data[configFile]), config.Environment{})
	if err != nil {
		t.Fatalf("the ConfigMap holds a configuration that the gateway refuses: %v", err)
	}
	return c
}

func TestConfigurationIsAccepted(t *testing.T) {
	if c := configuration(t); len(c.Watches) == 0 {
		t.Error("the configuration has no watch: it shows nothing")
	}
}

func TestConfigurationIsWhereTheArgumentsSay(t *testing.T) {
	c := deployed(t)
	want := c.VolumeMounts[0].MountPath + "/" + configFile
	if args := strings.Join(c.Args, " "); args != "serve --config "+want {
		t.Errorf("arguments %q, want serve --config %s", args, want)
	}
}

// TestPortsAreThoseOfTheConfiguration, from the socket to the Service.
func TestPortsAreThoseOfTheConfiguration(t *testing.T) {
	cfg, ports := configuration(t), map[string]int{}
	for _, p := range deployed(t).Ports {
		ports[p.Name] = p.ContainerPort
	}
	for name, listen := range map[string]string{"http": cfg.HTTP.Listen, "grpc": cfg.GRPC.Listen, "operations": cfg.Operations.Listen} {
		host, port, _ := net.SplitHostPort(listen)
		if port != strconv.Itoa(ports[name]) {
			t.Errorf("%s listens on %s, but the container's port is %d", name, listen, ports[name])
		}
		if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
			t.Errorf("%s listens on %s: nobody outside of the pod reaches it", name, listen)
		}
	}
	for _, p := range objects(t)["Service"].Spec.Ports {
		if p.TargetPort == "operations" {
			t.Errorf("the Service's port %s leads everybody to the operations listener", p.Name)
		}
		if ports[p.TargetPort] == 0 {
			t.Errorf("the Service's port %s goes to %q, which the container has not", p.Name, p.TargetPort)
		}
	}
}

// TestHostsAreThoseOfTheService: the gateway answers under each name that the
// cluster's DNS gives the Service, and under no foreign one.
func TestHostsAreThoseOfTheService(t *testing.T) {
	registry := watch.NewRegistry()
	defer registry.Close()
	g, err := gateway.New(gateway.Config{Registry: registry, HTTPSettings: gateway.HTTPSettings{Hosts: configuration(t).HTTP.Hosts}})
	if err != nil {
		t.Fatal(err)
	}
	service := objects(t)["Service"].Metadata.Name
	for host, want := range map[string]int{
		service: http.StatusOK, service + ":80": http.StatusOK, "10.1.2.3:8080": http.StatusOK,
		service + ".any.svc": http.StatusOK, service + ".any.svc.cluster.local": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest,
	} {
		r := httptest.NewRequest(http.MethodGet, "http://"+host+"/v1/watches", nil)
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", host, w.Code, want)
		}
	}
}

func TestProbesAskWhatExists(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(watchtidev1.Document)
	if err != nil {
		t.Fatal(err)
	}
	c := deployed(t)
	for name, p := range map[string]probe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe} {
		if p.HTTPGet.Path != name || p.HTTPGet.Port != "http" {
			t.Errorf("a probe asks %s at port %s, want %s at http", p.HTTPGet.Path, p.HTTPGet.Port, name)
		}
		if doc.Paths.Value(name) == nil {
			t.Errorf("the gateway has no %s", name)
		}
	}
}

// TestComposeFileIsTrue: its configuration is accepted, and the grace period covers the drain.
func TestComposeFileIsTrue(t *testing.T) {
	raw, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			StopGracePeriod string `yaml:"stop_grace_period"`
		} `yaml:"services"`
		Configs map[string]struct {
			Content string `yaml:"content"`
		} `yaml:"configs"`
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(configFile, []byte(file.Configs["watchtide"].Content), config.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	grace, err := time.ParseDuration(file.Services["watchtide"].StopGracePeriod)
	if need := c.Stream.DrainDelay + c.Stream.Drain + 2*c.Stream.WriteTimeout; err != nil || len(c.Watches) == 0 || grace <= need {
		t.Errorf("%d watches, stop_grace_period %s (%v): want a watch, and more than %s", len(c.Watches), grace, err, need)
	}
}

// TestGracePeriodCoversTheDrain: a pod that Kubernetes kills has not sent its
// goodbyes.
func TestGracePeriodCoversTheDrain(t *testing.T) {
	cfg := configuration(t).Stream
	if cfg.DrainDelay <= 0 || cfg.Drain <= 0 || cfg.WriteTimeout <= 0 {
		t.Fatal("the configuration leaves drain_delay, drain or write_timeout to the defaults: say them, the grace period is made of them")
	}
	grace := time.Duration(objects(t)["Deployment"].Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if need := cfg.DrainDelay + cfg.Drain + 2*cfg.WriteTimeout; grace <= need {
		t.Errorf("terminationGracePeriodSeconds is %s: want more than drain_delay %s + drain %s + 2 × write_timeout %s = %s",
			grace, cfg.DrainDelay, cfg.Drain, cfg.WriteTimeout, need)
	}
}
