# `make help` lists the targets. A fresh Debian with Go and make is enough: everything else is installed by the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
NODES ?= 1
TOOL := go tool -modfile=tools/go.mod

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1|/' | column -t -s '|'

.PHONY: demo
demo: ## Restart a container in place on a real cluster (or yours: KUBECONFIG and IMAGE_REPO) and print a timeline
	@build/run.sh demo

.PHONY: test
test: ## Lint, unit tests with -race, conformance, end to end on a real cluster; leaves nothing behind
	@build/run.sh test

.PHONY: check
check: ## The quick part of test: lint, generated files, unit tests with -race
	@build/run.sh test -quick

.PHONY: fmt
fmt: ## Format the code
	@$(TOOL) golangci-lint fmt ./...

.PHONY: generate
generate: ## Regenerate deepcopy functions and CRDs from api/
	@tools/generate.sh

.PHONY: images
images: ## Build the images into dist/images and push them to the test cluster's registry, if it is up
	@build/images.sh

.PHONY: cluster-up
cluster-up: ## Start a real Kubernetes in this checkout's .cluster (NODES=n)
	@NODES=$(NODES) test/cluster/cluster.sh up

.PHONY: cluster-down
cluster-down: ## Stop it and leave nothing behind
	@test/cluster/cluster.sh down

.PHONY: chaos
chaos: ## Ten minutes of faults on the real cluster, judged by a history checker (DURATION=10m)
	@build/run.sh chaos

.PHONY: bench-crr
bench-crr: ## Time restarts against the same stops sent straight to CRI, in the same run
	@build/bench-crr

.PHONY: bench-signal
bench-signal: ## Time finding and signalling a process against pkill and a plain loop over procfs
	@build/packages.sh pkill=procps && go run ./bench/signal
