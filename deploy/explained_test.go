package deploy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// pages are the configurations of proxies, and the headings under which the documentation
// explains them.
var pages = map[string][]string{
	"nginx": {"nginx.conf"}, "HAProxy": {"haproxy.cfg"}, "Caddy": {"Caddyfile"}, "Envoy": {"envoy.yaml"},
	"Traefik": {"traefik.yaml", "traefik-watchtide.yaml"},
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEveryLineIsExplained checks the directives of the three proxies whose configurations
// are lists of them.
func TestEveryLineIsExplained(t *testing.T) {
	page := read(t, "../docs/behind-a-proxy.md")
	known := map[string]bool{"defaults": true, "upstream": true} // names of sections, which say nothing by themselves
	for _, heading := range []string{"nginx", "HAProxy", "Caddy"} {
		_, section, _ := strings.Cut(page, "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		found := 0
		for line := range strings.Lines(read(t, pages[heading][0])) {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] == "}" || words[0] == "events.example.com" || strings.HasPrefix(words[0], "#") || known[words[0]] {
				continue
			}
			found++
			directive := words[0]
			if directive == "option" || directive == "timeout" {
				directive += " " + words[1]
			}
			if !regexp.MustCompile("`" + regexp.QuoteMeta(directive) + "[` ]").MatchString(section) {
				t.Errorf("docs/behind-a-proxy.md does not explain %s of %s", directive, pages[heading][0])
			}
		}
		if found < 5 {
			t.Errorf("%s has only %d directives", pages[heading][0], found)
		}
	}
}

// TestProxiesAreYAML reads the configurations that are not run, which say so.
func TestProxiesAreYAML(t *testing.T) {
	for _, heading := range []string{"Envoy", "Traefik"} {
		for _, name := range pages[heading] {
			text := read(t, name)
			var into map[string]any
			if err := yaml.Unmarshal([]byte(text), &into); err != nil || len(into) == 0 {
				t.Errorf("%s: %v, %v", name, into, err)
			}
			if begin, _, _ := strings.Cut(text, "\n\n"); !strings.Contains(begin, "not run in tests") {
				t.Errorf("%s does not say that it is not run in tests", name)
			}
		}
	}
}
