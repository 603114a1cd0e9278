# SPDX-License-Identifier: Apache-2.0
#
# The verbs, each one line; what needs more than a line is a script in scripts/.

SHELL    := /bin/bash
VERSION   = $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo 0.0.0-dev)
COMMIT    = $(shell git rev-parse --short=12 HEAD 2>/dev/null)
LDFLAGS   = -X main.version=$(VERSION) -X main.commit=$(COMMIT)
TOOL     := go tool -modfile=tools/go.mod
FUZZTIME ?= 20s

.PHONY: help deps deps-build build run test test-charts bench fuzz generate verify lint image clean
.DELETE_ON_ERROR:

help: ## print the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: deps-build ## install what is missing to build, test and lint (Debian packages, modules, npm)
	@scripts/deps.sh test

deps-build: # what build needs, without what only tests need
	@scripts/deps.sh build
	@$(MAKE) -s --no-print-directory ui/node_modules/.package-lock.json

build: deps-build ui/dist/index.html ## build bin/diagon and bin/diagon-server
	CGO_ENABLED=0 go build -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/diagon ./cmd/diagon
	CGO_ENABLED=1 go build -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/diagon-server ./cmd/diagon-server

run: build ## profile this machine: server, page and agent, data in ./diagon-data
	bin/diagon-server --local-agent

test: deps build ## run all tests; as root, or those of the kernel skip
	scripts/test.sh test.summary go page

test-charts: deps ## render the charts and compare; builds Helm once, minutes
	scripts/test.sh charts.summary charts

bench: build ## measure what diagon costs
	scripts/bench.sh

fuzz: ## run each fuzz target for FUZZTIME (20s)
	scripts/fuzz.sh $(FUZZTIME)

generate: ## make again what is generated and committed: protobuf, BPF objects
	$(TOOL) buf generate
	go generate ./...

verify: ## check that generated files, modules and formatting are as committed
	scripts/verify.sh

lint: ## vet, staticcheck, spelling, shell, TypeScript, protobuf, charts
	scripts/lint.sh

image: build ## build the images of agent and server by buildah, into bin/images
	scripts/image.sh

clean: ## remove what was built, not the data
	rm -rf bin out ui/dist

# npm itself notes in this file when it was done.
ui/node_modules/.package-lock.json: ui/package-lock.json
	. scripts/node.sh && npm --prefix ui ci --no-audit --no-fund
	@touch $@

ui/dist/index.html: ui/node_modules/.package-lock.json $(shell git ls-files -co --exclude-standard ui 2>/dev/null | grep -v -e '\.go$$' -e /test/)
	. scripts/node.sh && npm --prefix ui run build
	@touch $@
