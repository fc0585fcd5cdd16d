#!/bin/bash
# make bench-sidecarset: What rollouts and readiness flips cost refit-manager with 100 SidecarSets and 10,000 pods, simulated by kwok
# See bench/sidecarset. Flags are passed on: -nodes, -pods, -workloads, -sets. A cluster that it had to bring up is taken down
# again. Refit must not be installed on one that was there: its webhooks need the manager that this replaces.
set -euo pipefail
cd "$(dirname "$0")/../.."
cluster=test/cluster/cluster.sh
[ -f .cluster/settings.json ] || trap '"$cluster" down' EXIT
"$cluster" up
stages=$(cd bench/marker/components/kwok && go mod download sigs.k8s.io/kwok && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
(cd bench/marker/components/kwok && go build -ldflags="-s -w" -o ../../../../dist/bin/kwok sigs.k8s.io/kwok/cmd/kwok)
CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags=grpcnotrace -ldflags="-s -w" -o dist/bin/refit-manager ./cmd/refit-manager
go build -o dist/bin/bench-sidecarset ./bench/sidecarset
.cluster/enter dist/bin/bench-sidecarset -stages "$stages" "$@"
