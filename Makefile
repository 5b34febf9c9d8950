# Watchtide: every task is a target here, for manual use and for CI.
# Needs Go, git, make, and gcc for the race detector. Tools are pinned in tools/.

SHELL         := /bin/bash
.SHELLFLAGS   := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COUNT   ?= 1
OUT     ?= $(CURDIR)

DURATION    ?= 30m
SUBSCRIBERS ?= 10000
ATTACKERS   ?= 30

# Every module of the repository, the main one last, so that its results end the output.
MODULES := $(sort $(patsubst ./%/go.mod,%,$(shell find . -mindepth 2 -name node_modules -prune -o -mindepth 2 -name go.mod -print))) .

# The real servers that sources are tested against; they are heavy, so each is a
# module of its own. FULL_CONSUL are used only with WATCHTIDE_FULL_CONSUL=1, and FULL_KUBERNETES only with
# WATCHTIDE_FULL_KUBERNETES=1.
FULL_CONSUL     := internal/streamtest/upstreams/consul internal/streamtest/upstreams/consul119
FULL_KUBERNETES := internal/streamtest/upstreams/kubeapiserver
UNUSED_SERVERS  := $(if $(WATCHTIDE_FULL_CONSUL),,$(FULL_CONSUL)) $(if $(WATCHTIDE_FULL_KUBERNETES),,$(FULL_KUBERNETES))
SERVERS         := $(filter-out $(UNUSED_SERVERS),$(filter internal/streamtest/upstreams/%,$(MODULES)))
OURS        := $(filter-out internal/streamtest/upstreams/%,$(MODULES))

# Installing a package never runs its scripts. Packages are installed again only when the
# lock file is newer than npm's record of the installed packages.
NPM_CI := npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
INSTALL = cd $(1) && { [ node_modules/.package-lock.json -nt package-lock.json ] || $(NPM_CI); }

# A tool of the module tools/, run in the current directory.
TOOL := $(GO) tool -modfile=$(CURDIR)/tools/go.mod
BUF   = cd tools && $(GO) tool buf

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## serve this machine's live processes on http://127.0.0.1:8080 (HTTP=127.0.0.1:9000: there)
	@exec bin/watchtide serve --demo $(if $(HTTP),--http $(HTTP))

.PHONY: build
build: ## build bin/watchtide
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/watchtide ./cmd/gateway
	@echo "bin/watchtide: $$(($$(wc -c < bin/watchtide) / 1000000)) MB" >&2

.PHONY: man
man: ## write the manual pages into dist/man
	@rm -rf dist/man
	$(GO) run -ldflags '-X main.version=$(VERSION)' ./cmd/gateway manual dist/man

# Build tags of tests that need more than this repository. tags_test.go checks
# that every such test has one of them, and that each has a target. test-all runs the
# tests tagged with TAGS. The tests tagged with PEERS test third-party servers that the
# bench compares with: they say nothing about the gateway, and run only on request.
TAGS  := servers
PEERS := peers

# If PACKAGES is set, test and its parts run only these packages of the main module.
PACKAGES ?=
# With -short, tests skip the second of the gateway's two pumps and all mutants, and use
# smaller sizes. test-all runs without -short.
LENGTH := -short
# The race detector makes tests several times slower, to build and to run. test is for every
# change, and goes without; all other targets have it. make test RACE=-race has it as well.
RACE := -race
# By default each test binary sleeps for a second at exit, to report races in remaining
# goroutines. There are about a hundred binaries, and no goroutines remain. lint runs go vet
# with every tag, so tests do not run a part of it again.
GO_TEST = GORACE=atexit_sleep_ms=0 $(GO) test $(TESTED)
TESTED  = $(RACE) -vet=off $(SHUFFLE) -timeout 40m
# Tests run in random order, except with test: go test keeps results only without it, so that
# after a change test runs the packages that the change can affect.
SHUFFLE := -shuffle=on

# A file that gets a line of JSON for each test; tools/testrun prints a summary of it.
REPORT  ?=
# GO_TEST for a module, by tools/testrun: it tests again a package in which the race detector
# itself crashed, and tests that depend on real servers or on the time that processes take.
TESTRUN = GO="$(GO)" GORACE=atexit_sleep_ms=0 $(GO) run -C tools ./testrun -dir $(CURDIR)/$(1) $(if $(REPORT),-report $(abspath $(REPORT))) -- $(TESTED) $(LENGTH) $(AT_ONCE) $(TAGGED) --

# Much of the time is spent waiting for deliberate delays, most of all with -short, so four
# packages run on two processors, and three at full length.
AT_ONCE = -p $(shell echo $$(($(if $(LENGTH),4,3) * $$(getconf _NPROCESSORS_ONLN) / 2)))

# What test leaves to test-all: packages that build and start whole gateways, to test documents,
# examples and what is deployed, and the other modules.
ONLY_IN_ALL := deploy docs examples
PACKAGES_OF_TEST = $$($(GO) list ./... | grep -vE '^[^/]*/[^/]*/[^/]*/($(subst $() ,|,$(ONLY_IN_ALL)))(/|$$)')

.PHONY: test
test: RACE :=
test: SHUFFLE :=
test: ## run the tests of the main module, the clients and the dashboard; minutes (PACKAGES=./stream/...: only these; RACE=-race: with the race detector)
	@web=$$(mktemp); trap 'rm -f "$$web"' EXIT; \
	$(MAKE) --no-print-directory test-web >"$$web" 2>&1 & pid=$$!; \
	$(MAKE) --no-print-directory RACE=$(RACE) SHUFFLE=$(SHUFFLE) test-go; go=$$?; \
	if wait $$pid; then grep -aE '==>|Test Files|Tests' "$$web"; else cat "$$web"; go=1; fi; exit $$go

.PHONY: test-go
test-go:
	@$(call TESTRUN,.) $(or $(PACKAGES),$(PACKAGES_OF_TEST))
	@$(if $(PACKAGES),,$(call TESTRUN,client) ./...)

.PHONY: test-web
test-web:
	@if command -v npm >/dev/null; then for w in web/client web/dashboard; do echo "==> $$w" >&2; ($(call INSTALL,$$w) && npm test --silent); done; \
	else echo "==> web: NOT TESTED, npm is missing: install Node 20.19 or newer" >&2; fi

# The packages of the main module whose tests start real servers, unless PACKAGES are set.
WITH_SERVERS = grep -rl --include='*_test.go' --exclude-dir=node_modules --exclude-dir=bench --exclude-dir=thirdparty --exclude-dir=provider --exclude-dir=release --exclude-dir=informer '^//go:build servers$$' . | xargs -n 1 dirname | sort -u

.PHONY: test-servers
test-servers: servers ## run the tests with real etcd, Consul, Kubernetes, NATS, PostgreSQL and nginx (WATCHTIDE_FULL_CONSUL=1: with full Consul servers, today: with one of them a day; WATCHTIDE_FULL_KUBERNETES=1: with kube-apiserver)
	@echo "==> with real servers" >&2
	@$(GO_TEST) -tags servers $(or $(PACKAGES),$$($(WITH_SERVERS)))
	@$(if $(PACKAGES),,cd bench && $(GO_TEST) -tags servers ./soak)
	@$(if $(PACKAGES),,cd client/thirdparty && $(GO_TEST) -tags servers ./...)
	@$(if $(PACKAGES),,cd access/provider && $(GO_TEST) -tags servers ./...)
	@$(if $(PACKAGES),,cd informer && $(GO_TEST) -tags servers ./...)
	@$(if $(PACKAGES),,cd release && $(GO_TEST) -tags servers .)

.PHONY: test-peers
test-peers: ## run the tests of the servers that the bench compares with (skips those of nginx, nchan and Pushpin that are not installed); not part of test-all
	@echo "==> bench: other servers" >&2
	@cd bench && $(GO_TEST) -tags peers ./internal/peers/... ./fanout

.PHONY: test-browser
test-browser: ## run the scenarios of the dashboard in a real browser (needs chromium, and nginx for some)
	@echo "==> web/dashboard/browser" >&2
	@if [ -z "$(CHROMIUM)" ]; then echo "==> web/dashboard/browser: NOT TESTED, chromium is missing: apt-get install chromium" >&2; \
	elif ! command -v npm >/dev/null; then echo "==> web/dashboard/browser: NOT TESTED, npm is missing: install Node 20.19 or newer" >&2; \
	else $(MAKE) --no-print-directory browser-modules && $(BROWSER) npm test --silent; fi

.PHONY: test-contract
test-contract: ## run the client against a real gateway in Node, Deno, Bun, Chromium, Firefox and WebKitGTK (needs npm; browsers that are missing are skipped)
	@echo "==> web/client/contract" >&2
	@$(call INSTALL,web/client) && npm run --silent build
	@$(call INSTALL,web/client/contract) && npm test --silent

# The Go tests last, so that their results end the output.
.PHONY: test-all
test-all: servers test-browser test-contract client dashboard-check ## run all tests at full length, including those with servers and a browser; about half an hour
	@$(MAKE) --no-print-directory test-modules LENGTH= TAGGED='-tags $(TAGS)'

# The packages that test-modules tests, compiled for it, but not linked. It has the lowest priority.
.PHONY: compile-tests
compile-tests:
	@for m in $(OURS); do (cd $$m && nice -n 19 $(GO) list -export -test $(RACE) -tags $(TAGS) ./... >/dev/null) || exit 1; done

.PHONY: test-modules
test-modules:
	@for m in $(OURS); do echo "==> $$m" >&2; $(call TESTRUN,$$m) ./...; done

# The number of histories, and the seed of the first (0: from the clock).
N    ?= 100000
SEED ?= 0

.PHONY: histories
histories: ## run random histories through trees of gateways and all checkers (N=100000; SEED=1 starts at this seed)
	$(GO) test -count 1 -timeout 0 -run '^TestHistories$$' -v ./stream/histories -args -histories $(N) -seed $(SEED)

.PHONY: mutants
mutants: ## build the histories and the tests of views with each known fault, which they must find, and run the properties of views with all seeds; about half an hour
	$(GO) test -count 1 -timeout 0 -run 'Mutants|Leaks|Stalls|Miscounts|AgainstTheModel|Confidential' -v ./stream/histories ./internal/views -args -all

.PHONY: client
client: ## check, test and pack the TypeScript client, and fail if internal/web/bundle is stale (needs Node 20 or newer, with npm)
	@echo "==> web/client" >&2
	@$(call INSTALL,web/client) && npm run --silent check

.PHONY: bundle
bundle: ## make the client that gateways serve, in internal/web/bundle, which is committed (needs Node 20 or newer, with npm)
	@$(call INSTALL,web/client) && npm run --silent generate && npm run --silent bundle

.PHONY: dashboard
dashboard: ## build the dashboard into internal/web/page, which is committed (needs Node 20.19 or newer, with npm)
	@$(call INSTALL,web/dashboard) && node ../client/scripts/protocol.js && npm run --silent typecheck && npm run --silent build

.PHONY: dashboard-check
dashboard-check: ## check and test the dashboard, and fail if internal/web/page is stale
	@echo "==> web/dashboard" >&2
	@$(call INSTALL,web/dashboard) && npm run --silent check

# Debian's browser, or the one named by CHROMIUM.
CHROMIUM ?= $(shell command -v chromium chromium-browser google-chrome | head -n 1)
BROWSER   = cd web/dashboard/browser && CHROMIUM=$(CHROMIUM)

.PHONY: screenshots
screenshots: browser-modules ## take screenshots of every page of the dashboard into docs/images (needs chromium; smaller with pngquant)
	@$(BROWSER) npm run --silent screenshots

.PHONY: bench-browser
bench-browser: browser-modules ## compare the dashboard with TanStack Table, AG Grid and a naive page in a real browser; about ten minutes (ARGS="--runs 3 --seconds 10": less)
	@$(call INSTALL,web/dashboard/browser/bench/peers) && node build.mjs
	@$(BROWSER) npm run --silent bench -- $(ARGS)

.PHONY: bench-kubelets
bench-kubelets: browser-modules ## measure what 1,300 nodes of 12 kB that change twice a second leave of a page, in a real browser; about two minutes (MINUTES=60: an hour for each page, PAGES=auto,window: only these, SLOWDOWN=4: with a slower CPU)
	@$(BROWSER) $(if $(MINUTES),WATCHTIDE_MINUTES=$(MINUTES)) $(if $(PAGES),WATCHTIDE_PAGES=$(PAGES)) $(if $(SLOWDOWN),WATCHTIDE_SLOWDOWN=$(SLOWDOWN)) \
		node --test --test-reporter=spec scenarios/kubelets.mjs

# The scenarios import their own modules, and the built client.
.PHONY: browser-modules
browser-modules:
	@$(call INSTALL,web/client) && npm run --silent build
	@$(call INSTALL,web/dashboard/browser)

.PHONY: servers
servers: ## compile the real servers that tests start
	@$(GO) run ./internal/streamtest/realserver/compile $(SERVERS)

.PHONY: cover
cover: servers ## write coverage.out and print the total
	$(GO) test -tags '$(TAGS)' -coverpkg=./... -coverprofile=coverage.out ./...
	@$(GO) tool cover -func=coverage.out | tail -n 1

.PHONY: bench
bench: ## run all benchmarks and print their tables, including those of docs/performance.md (COUNT=6 for a comparison); about two hours
	@mkdir -p profile
	for m in . bench; do $(GO) test -C $$m -run '^$$' -bench . -skip '^BenchmarkUpstream$$' -benchmem -count $(COUNT) ./...; done | tee profile/bench.txt
	@$(TOOL) benchstat profile/bench.txt
	$(GO) run -C bench .
	@$(MAKE) --no-print-directory bench-fanout bench-views bench-sources bench-browser

.PHONY: simulate
simulate: ## simulate 10,000,000 clients in a deployment, without a region, and more, and draw docs/images/scale-*.svg; minutes (ARGS="-only herd": see -help)
	$(GO) run ./gateway/simulate -out docs/images $(ARGS)

.PHONY: bench-fanout
bench-fanout: ## compare the gateway with other servers and a bare write loop, with 10,000 subscribers; about an hour
	$(GO) run -C bench ./fanout

# A gateway of an older commit, for bench-views to compare what needs no view.
BEFORE ?=

.PHONY: bench-views
bench-views: ## measure the cost of views and of access rules and print the tables of docs/performance.md; about eight minutes (BEFORE=path: compare with an older gateway)
	$(GO) run -C bench ./views $(if $(BEFORE),-before $(abspath $(BEFORE)))

.PHONY: bench-access
bench-access: ## measure what access costs, and print the table of docs/performance.md; about a minute
	$(GO) run -C bench ./access

.PHONY: bench-crowd
bench-crowd: ## connect N=190000 real subscribers to a tree of gateways, restart all of it, check what each has received, and print the table of docs/scale.md; about ten minutes (ARGS="-help": the options)
	@mkdir -p profile
	$(GO) build -C bench -o $(CURDIR)/profile/crowd ./crowd
	profile/crowd $(if $(filter file,$(origin N)),,-n $(N)) $(ARGS)

.PHONY: bench-proxies
bench-proxies: ## restart and pause replicas behind nginx, HAProxy and Caddy with the default times, print the tables of docs/behind-a-proxy.md and docs/continuity.md; about eight minutes (ARGS="-clients 800 -changes 10": so many clients, and changes a second)
	@$(GO) test -tags servers -count 1 -timeout 30m -run '^Test(Restarts|PausedReplica|Resent)BehindProxies$$' -v ./deploy -args -full $(ARGS)

.PHONY: test-older
test-older: ## upgrade and downgrade replicas between this build and an older one, under clients and gateways of both; two minutes (BEFORE=path: the older gateway)
	@$(GO) test -tags servers -count 1 -run '^TestOlderBuild$$' -v ./deploy -args -older $(or $(abspath $(BEFORE)),$(error BEFORE=path names the gateway of an older build))

.PHONY: bench-quick
bench-quick: ## the essential comparisons of bench-fanout, and the log; about ten minutes
	$(GO) run -C bench . -large=false -runs 1
	$(GO) run -C bench ./fanout -quick

.PHONY: profile
profile: ## profile a gateway under live events and under snapshots, print the top, keep profile/*.pprof
	@mkdir -p profile
	$(GO) build -C bench -o $(CURDIR)/profile/hotpath ./hotpath
	profile/hotpath -dir profile

.PHONY: bench-sources
bench-sources: servers ## compare every source with its client library and print the table of docs/performance.md (COUNT=3 for medians)
	@mkdir -p profile
	@packages=$$(grep -l 'figures\.Run(' internal/source/*/*_test.go | xargs -n 1 dirname | sort -u | sed 's,^,./,'); \
	$(GO) test -run '^$$' -tags servers -bench '^BenchmarkUpstream$$' -count $(COUNT) -p 1 -timeout 60m $$packages > profile/sources.txt 2>&1 || { cat profile/sources.txt >&2; exit 1; }; \
	awk -f internal/streamtest/figures/table.awk profile/sources.txt

.PHONY: soak
soak: servers ## run a gateway under misbehaving subscribers and failing upstreams (DURATION=30m, SUBSCRIBERS=10000, of which ATTACKERS=30)
	@mkdir -p profile
	$(GO) test -C bench -tags servers -count 1 -timeout 0 -run '^TestSoak$$' -v ./soak -args -duration $(DURATION) -subscribers $(SUBSCRIBERS) -attackers $(ATTACKERS) -report $(CURDIR)/profile/soak.md

# The attacks to make; empty: all. The gateway to attack; empty: that of this repository.
ONLY    ?=
GATEWAY ?=

.PHONY: attacks
attacks: ## attack a gateway from outside, print what was measured and fail if it does not withstand; minutes (ONLY=regex-starves-views: these alone; GATEWAY=path: this binary)
	$(GO) run -C bench ./attacks -only '$(ONLY)' $(if $(GATEWAY),-gateway $(abspath $(GATEWAY)))

.PHONY: reliability
reliability: servers ## subject every source to every fault and print the tables of docs/reliability.md
	@mkdir -p profile
	@packages=$$(grep -l 'faults\.Run(' internal/source/*/*_test.go | xargs -n 1 dirname | sort -u | sed 's,^,./,'); status=0; \
	$(GO) test -tags servers -count 1 -p 1 -timeout 20m -run '^TestFaults' -v $$packages > profile/reliability.txt 2>&1 || status=$$?; \
	awk -f internal/streamtest/faults/table.awk profile/reliability.txt || status=1; \
	if [ $$status != 0 ]; then grep -v ' reliability |' profile/reliability.txt >&2; exit $$status; fi
	@echo
	@packages=$$(grep -l 'TestScriptedFaults(' internal/source/*/*_test.go | xargs -n 1 dirname | sort -u | sed 's,^,./,'); status=0; \
	$(GO) test -count 1 -p 1 -timeout 20m -run '^TestScriptedFaults' -v $$packages > profile/scripted.txt 2>&1 || status=$$?; \
	awk -f internal/streamtest/faults/scripted.awk profile/scripted.txt || status=1; \
	if [ $$status != 0 ]; then grep -v ' scripted |' profile/scripted.txt >&2; exit $$status; fi

.PHONY: lint
lint: lint-go lint-proto lint-modules ## gofmt, go vet, staticcheck, buf lint, go mod tidy

.PHONY: lint-go
lint-go:
	@bad=$$(find . -name node_modules -prune -o -name '*.go' -print | xargs gofmt -l); \
	if [ -n "$$bad" ]; then echo "gofmt would change:" $$bad >&2; exit 1; fi
	@for m in $(OURS); do for tags in "" $(TAGS) $$([ $$m != bench ] || echo $(PEERS)); do echo "==> $$m: go vet $${tags:+-tags $$tags}" >&2; \
	(cd "$$m" && $(GO) vet -tags "$$tags" ./...); done; done
	@for m in $(OURS); do echo "==> $$m: staticcheck" >&2; (cd "$$m" && $(TOOL) staticcheck -tags $(TAGS),$(PEERS) ./...); done # no file is only without a tag
	@for os in darwin windows; do echo "==> go build for $$os" >&2; GOOS=$$os $(GO) build ./gateway/...; done

.PHONY: lint-proto
lint-proto:
	@echo "==> buf lint, buf format" >&2
	@$(BUF) lint ../openapi
	@$(BUF) format --diff --exit-code ../openapi

.PHONY: lint-modules
lint-modules:
	@for m in $(OURS); do echo "==> $$m: go mod tidy" >&2; (cd "$$m" && $(GO) mod tidy -diff); done

# The web packages with a lock file.
WEB := web/client web/client/contract web/dashboard web/dashboard/browser web/dashboard/browser/bench/peers examples/react

# An unreachable database is a failure too: both tools then exit with an error, npm only
# if it is not configured to be offline.
.PHONY: audit
audit: ## look for known vulnerabilities in dependencies: govulncheck, npm audit (needs the network, and fails without it)
	@failed=; \
	for m in $(OURS); do echo "==> $$m: govulncheck" >&2; (cd "$$m" && $(TOOL) govulncheck ./...) || failed+=" $$m"; done; \
	for w in $(WEB); do echo "==> $$w: npm audit" >&2; (cd "$$w" && npm audit --offline=false) || failed+=" $$w"; done; \
	if [ -n "$$failed" ]; then echo "audit: FAILED in$$failed: vulnerabilities, or no answer from the network; see above" >&2; exit 1; fi; \
	echo "audit: nothing found in $(OURS) $(WEB)" >&2

.PHONY: generate
generate: ## regenerate the generated files (OUT=dir: into another directory)
	$(BUF) generate ../openapi --template ../openapi/buf.gen.yaml -o $(OUT)
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; mkdir -p $(OUT)/openapi; set -x; \
	cd tools; $(GO) tool buf generate ../openapi --template ../openapi/buf.gen.openapi.yaml -o "$$tmp"; \
	$(GO) run ./openapidoc -overlay ../openapi/overlay.yaml -o $(OUT)/openapi/watchtidev1/openapi.json "$$tmp/watchtide.swagger.json"

.PHONY: check-generated
check-generated: ## fail if a generated file is stale
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	$(MAKE) --no-print-directory generate OUT="$$tmp"; \
	stale=$$(cd "$$tmp" && find . -type f | sort | while read -r f; do cmp -s "$$f" "$(CURDIR)/$$f" || echo "$${f#./}"; done); \
	stale+=$$(find openapi -name '*.pb.go' -o -name '*.pb.gw.go' | while read -r f; do [ -f "$$tmp/$$f" ] || echo " $$f"; done); \
	if [ -n "$$stale" ]; then echo "stale, run 'make generate' and commit:" $$stale >&2; exit 1; fi; \
	echo "generated files are fresh" >&2

# The platforms of a release; empty: all.
TARGETS ?=
# Who answers for the packages, as in "Name <name@example.org>". Without one, only packages of versions
# without a tag are made, and they say that they are not for publication.
MAINTAINER ?=
export MAINTAINER
RELEASE     = cd release && $(GO) run . $(if $(TARGETS),-targets '$(TARGETS)') -maintainer "$$MAINTAINER"

.PHONY: release
release: ## make archives, packages, image, chart and bills of materials in dist/release, and publish nothing (TARGETS=linux/amd64: for these platforms; MAINTAINER='Name <name@example.org>': who answers for the packages)
	@$(RELEASE)

.PHONY: release-check
release-check: ## make a release twice, in two folders and the second time with an empty build cache, and compare the bytes
	@$(RELEASE) -check

.PHONY: manifest
manifest: ## make deploy/kubernetes.yaml from the Helm chart
	@cd release && $(GO) test ./manifests -count 1 -run '^TestPlainManifestIsTheChart$$' -update

.PHONY: clean
clean: ## remove build output
	rm -rf bin dist profile coverage.out
