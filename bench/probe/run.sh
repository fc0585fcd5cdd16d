#!/bin/bash
# make bench-probe: What pod probes cost the node, against as many readiness probes of kubelet in the same run
# Flags of bench/probe are passed on: -counts, -kinds, -periods, -floor, -window. A cluster that it had to bring up is
# taken down again; one that was there stays, with Refit installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
cluster=test/cluster/cluster.sh
[ -f .cluster/settings.json ] || trap '"$cluster" down' EXIT
"$cluster" up
hack/images.sh --extra testapp=test/e2e/testapp
go build -o dist/bin/bench-probe ./bench/probe
.cluster/enter dist/bin/bench-probe "$@"
