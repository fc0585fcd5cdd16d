# `make help` lists the targets. A fresh Debian with Go and make is enough: everything else is installed by the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
NODES ?= 1
TOOL := go tool -modfile=tools/go.mod
# End-to-end tests of refit-sidecar that need no kubelet API of the pod's node.
ON_VIRTUAL_NODES := OfAVirtualNode|SidecarExecutes|HotUpdateChanges|RefusedUpdates|Precheck|UpdateFromAConfigMap|AcceptedRevision|NativeSidecar|ProbeFlips|PodProbeAnnotation|ConfigurationIs|ConfigurationOfThe|WithoutShared|DeletedFiles|RestoreOutlasts|AnUpdateTakes

.PHONY: help bench e2e-virtual hostile demo demo-sidecar demo-probe demo-inplace demo-workload demo-sidecarset timeline terminal test test-kubernetes test-load test-release test-vm site check fmt generate images cluster-up cluster-down dashboard-picture mutation chaos release
help: ## Show this list
	@{ grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  \1|/'; sed -nE 's/^# make (bench-[a-z]+): /  \1|/p' test/bench/run.sh; } | column -t -s '|'

demo: ## Restart a container in place on a real cluster (or yours: KUBECONFIG and IMAGE_REPO) and print a timeline
	@hack/run.sh demo

demo-sidecar: ## Hot updates, probes and a restore by the sidecar, in a pod with nginx (or on your cluster: as demo)
	@hack/run.sh demo-sidecar

demo-probe: ## A probe labels a pod as idle and as allocated (or on your cluster: as demo)
	@hack/run.sh demo-probe

demo-inplace: ## A running pod gets a new image and resources in place, beside one that is recreated (or on your cluster: as demo)
	@hack/run.sh demo-inplace

demo-workload: ## A Deployment under load gets a new image and more CPU in place, beside one that is rolled out (or on your cluster: as demo)
	@hack/run.sh demo-workload

demo-sidecarset: ## Sidecars injected, updated in place in ten pods, and upgraded hot under load (or on your cluster: as demo)
	@hack/run.sh demo-sidecarset

test: ## Lint, unit tests with -race, conformance, end to end on a real cluster; leaves nothing behind
	@hack/run.sh test

test-kubernetes: ## The end-to-end tests on another version of Kubernetes than make test (VERSION=1.34)
	@KUBERNETES='$(or $(VERSION),$(error VERSION=1.36, 1.34 or 1.31))' hack/run.sh test -part=e2e

test-vm: ## The demos on a fresh Debian with systemd and cgroup v2, in a virtual machine, before and after a power failure
	@test/vm/run.sh

check: ## The quick part of test: lint, generated files, unit tests with -race
	@hack/run.sh test -part=check

build: ## Build the programs and kubectl-refit into dist/, with the flags of the images
	@cd hack/images && go run . --programs-only --version "$${TAG:-dev}"
	@CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=$${TAG:-dev}" -o dist/kubectl-refit ./cmd/kubectl-refit

release: ## Build a release of this commit into dist/release (VERSION=v1.2.3, RELEASE_FLAGS="--key cosign.key --push HOST/FOLDER"), and verify it
	@cd hack/release && go run . --version '$(VERSION)' $(RELEASE_FLAGS) && go run . verify

e2e: ## Build what has changed, put it on the cluster that is up and run end-to-end tests (RUN=TestName)
	@hack/e2e.sh '$(RUN)'

e2e-virtual: ## Tests of refit-sidecar in pods of a virtual node, on the cluster that is up (RUN=TestName)
	@mkdir -p dist/bin && cd test/virtualnode && go build -o ../../dist/bin/virtual-node .
	@REFIT_VIRTUAL_NODE=$(CURDIR)/dist/bin/virtual-node hack/e2e.sh '$(or $(RUN),$(ON_VIRTUAL_NODES))'

hostile: ## Attacks by one tenant beside the operations of another, 200 of each kind, on the cluster that is up
	@REFIT_HOSTILE=long hack/e2e.sh "TestATenantHarmsNobodyElse|TestAManagerStartsBesideLargePods" -timeout=120m

test-load: ## Ten pods restarted under load without a failed request, on a cluster that is up and without Refit
	@hack/images.sh --tests
	@REFIT_CHART=1 REFIT_CHART_LOAD=1 KUBECONFIG=$(CURDIR)/.cluster/kubeconfig go test -count=1 -v -timeout 15m -run UnderLoad ./test/chart

test-release: ## Two releases in the registry of a cluster that is up and without Refit: verified, installed, upgraded, rolled back and removed by a user
	@REFIT_RELEASE=1 KUBECONFIG=$(CURDIR)/.cluster/kubeconfig go test -count=1 -v -timeout 40m -run TestRelease ./test/chart

fmt: ## Format the code
	@$(TOOL) golangci-lint fmt ./...

generate: ## Regenerate deepcopy functions and CRDs from api/
	@tools/generate.sh

images: ## Build the images into dist/images and push them to the test cluster's registry, if it is up
	@hack/images.sh

cluster-up: ## Start a real Kubernetes in this checkout's .cluster (NODES=n)
	@NODES=$(NODES) test/cluster/cluster.sh up

cluster-down: ## Stop it and leave nothing behind
	@test/cluster/cluster.sh down

site: ## Build the documents as a site into dist/site, with mkdocs (apt-get install mkdocs)
	@mkdocs build --quiet --strict --site-dir dist/site

timeline: ## Record a restart in place beside a deletion and draw docs/images/restart-timeline.svg
	@hack/run.sh timeline

terminal: ## Record commands of kubectl refit in a terminal and draw docs/images/terminal.svg (or on your cluster: as demo)
	@hack/run.sh terminal

dashboard-picture: export KUBECONFIG = $(CURDIR)/.cluster/kubeconfig
dashboard-picture: ## Run end-to-end tests on the cluster that is up and draw what the dashboard shows of it, docs/images/dashboard.svg (RUN=TestName)
	@cd hack/monitoring && go run -tags=remove_all_sd ./picture --kubectl='$(CURDIR)/.cluster/bin/kubectl' -- '$(CURDIR)/hack/e2e.sh' '$(or $(RUN),TestRestartOf|TestProbesOf|TestProbesAre|TestPullCommand|TestMetricsOf|TestSidecarSetIs|TestImagePullJobOf)' -count=4

mutation: ## Change the code that decides, one small change at a time, and list the changes that no test notices (PACKAGES="crr hook")
	@hack/run.sh mutation $(PACKAGES)

chaos: ## Ten minutes of faults on the real cluster, judged by a history checker (DURATION=10m); then make fuzz
	@hack/run.sh chaos
	@hack/fuzz.sh

fuzz: ## Every fuzz target for 20 s (FUZZTIME=20s)
	@hack/fuzz.sh

bench: ## All benchmarks, one after the other on a quiet machine (some hours); writes the tables of docs/benchmarks.md
	@test/bench/run.sh all

bench-%:
	@test/bench/run.sh $*
