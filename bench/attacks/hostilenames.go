package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"unicode"
)

var hostileNames = attack{
	name:  "hostile-names",
	title: "a gateway names watches and keys with escapes for terminals; somebody presses TAB in a command line with its address, and asks it for lists",
	run:   runHostileNames,
}

// hostile are names that a terminal would interpret, or show as something else.
var hostile = []string{"\x1b]0;title\x07", "a\x1b[2Jb", "c\rd", "e\nf", "\u009b31mg", "h\u202ei", "j\x7f", "\x00k", "l\tm\x1b[31m"}

func runHostileNames(ctx context.Context, r *rig) error {
	server := httptest.NewServer(http.HandlerFunc(hostileAnswer))
	defer server.Close()
	for _, command := range [][]string{
		{"__complete", "watch", "--server", server.URL, ""},
		{"__complete", "get", "--server", server.URL, ""},
		{"__complete", "get", "--server", server.URL, "good", ""},
		{"__complete", "doctor", "--server", server.URL, "--watch", ""},
	} {
		output, code, err := r.command(ctx, command...)
		if err != nil {
			return err
		}
		what := strings.ReplaceAll(strings.Join(command, " "), server.URL, "URL") + "TAB"
		r.report(what+": characters for terminals", "0", code == 0 && interpreted(output) == 0, "%d, exit code %d", interpreted(output), code)
		r.report(what+": offers the name that is not hostile", "good", strings.Contains(output, "good"), "%.20q", output)
	}
	return nil
}

// hostileAnswer answers as a gateway.
func hostileAnswer(w http.ResponseWriter, r *http.Request) {
	type object = map[string]any
	var watches, resources []object
	for i, name := range append(hostile, "good") {
		watches = append(watches, object{"name": name, "source": "s" + name, "state": "in_sync", "reason": name})
		resources = append(resources, object{"key": name, "revision": fmt.Sprint(i + 1), "value": 1})
	}
	w.Header().Set("Content-Type", "application/json")
	answer := object{"watches": watches, "resources": resources, "position": "e-1", "revision": "1", "epoch": "e"}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		io.WriteString(w, err.Error())
	}
}

// interpreted counts characters that a terminal does not show as they are.
func interpreted(text string) (n int) {
	for _, c := range text {
		if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
			n++
		}
	}
	return n
}
