// Command attacks attacks a gateway, from outside and on loopback, and prints a table: what
// is measured, the figure, the bound, and whether the gateway withstood. It fails if one
// attack succeeded.
//
// An attack is a file with a function that starts gateways through a rig, attacks them, and
// reports rows; name it in the list attacks. Attacks run one after another.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/watchtide/watchtide/bench/internal/process"
)

// attack is one way to do harm.
type attack struct {
	name  string // of its file, with hyphens
	title string // what the attacker does, in a sentence
	// run attacks, and reports what it measured. An error says that it could not measure.
	run func(ctx context.Context, r *rig) error
}

// attacks are all attacks, in the order of the table.
var attacks = []attack{
	regexStarvesViews,
	viewDrag,
	windowMoves,
	manyWindows,
	grpcOverTLS,
	logoutsPushOut,
	twoTokens,
	reloadRaces,
	ticketWrites,
	revocationsForgotten,
	fullStoreTells,
	templatePlaces,
	crossSitePages,
	insertedVariables,
	hostileNames,
	endlessLine,
	frameFloods,
	tlsHandshakes,
	tlsRecords,
}

func main() {
	only := flag.String("only", "", "regular expression: only these `attacks` of "+names())
	gateway := flag.String("gateway", "", "`program` to attack; built from this repository by default")
	flag.Parse()
	process.Main("attacks", func(ctx context.Context) error { return run(ctx, *only, *gateway) })
}

func names() string {
	var all []string
	for _, a := range attacks {
		all = append(all, a.name)
	}
	return strings.Join(all, ", ")
}

func run(ctx context.Context, only, gateway string) error {
	chosen, err := regexp.Compile("^(" + only + ")")
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	dir, err := os.MkdirTemp("", "attacks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if gateway == "" {
		if gateway, err = process.BuildGateway(ctx, dir); err != nil {
			return err
		}
	}
	if gateway, err = filepath.Abs(gateway); err != nil {
		return err
	}
	var rows []row
	for _, a := range attacks {
		if chosen.MatchString(a.name) {
			fmt.Fprintf(os.Stderr, "%s: %s\n", a.name, a.title)
			rows = append(rows, carryOut(ctx, a, gateway, dir)...)
		}
	}
	if len(rows) == 0 {
		return fmt.Errorf("-only %s: no attack has such a name; want one of %s", only, names())
	}
	return verdict(rows)
}

// carryOut returns the rows of an attack. What could not be measured counts as not withstood.
func carryOut(ctx context.Context, a attack, gateway, dir string) []row {
	r := &rig{program: gateway, dir: filepath.Join(dir, a.name), attack: a.name}
	defer r.close()
	err := a.run(ctx, r)
	if err == nil && len(r.rows) == 0 {
		err = errors.New("nothing was measured")
	}
	if err != nil {
		r.report("could be measured", "no error", false, "%v", err)
	}
	return r.rows
}
