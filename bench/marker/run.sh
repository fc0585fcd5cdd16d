#!/bin/bash
# make bench-marker: Count what refit-manager writes for a PodProbeMarker with 500 nodes and 5,000 pods, simulated by kwok
# See bench/marker. Flags are passed on: -nodes, -pods, -flips. A cluster that it had to bring up is taken down again; on
# one that was there refit-manager pauses meanwhile.
set -euo pipefail
cd "$(dirname "$0")/../.."
cluster=test/cluster/cluster.sh
[ -f .cluster/settings.json ] || trap '"$cluster" down' EXIT
"$cluster" up
stages=$(cd bench/marker/components/kwok && go mod download sigs.k8s.io/kwok && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
(cd bench/marker/components/kwok && go build -ldflags="-s -w" -o ../../../../dist/bin/kwok sigs.k8s.io/kwok/cmd/kwok)
CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags=grpcnotrace -ldflags="-s -w" -o dist/bin/refit-manager ./cmd/refit-manager
go build -o dist/bin/bench-marker ./bench/marker
.cluster/enter dist/bin/bench-marker -stages "$stages" "$@"
