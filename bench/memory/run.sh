#!/bin/bash
# make bench-memory: What a node and a pod are charged for the daemon, the sidecar and the manager: idle, and after requests
# Flags of bench/memory are passed on: -pods, -requests, -probes, -after. A cluster that it had to bring up is taken down again; one
# that was there stays, with Refit installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
cluster=test/cluster/cluster.sh
[ -f .cluster/settings.json ] || trap '"$cluster" down' EXIT
"$cluster" up
hack/images.sh --extra testapp=test/e2e/testapp
go build -o dist/bin/bench-memory ./bench/memory
.cluster/enter dist/bin/bench-memory "$@"
