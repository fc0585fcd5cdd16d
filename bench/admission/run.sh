#!/bin/bash
# make bench-admission: Time the creation of pods with 100 SidecarSets, of which 2 select them, against pods without the webhook, in the same run
# Flags of bench/admission are passed on: -pods, -sets, -required. A cluster that it had to bring up is taken down again; one
# that was there stays, with Refit installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
cluster=test/cluster/cluster.sh
[ -f .cluster/settings.json ] || trap '"$cluster" down' EXIT
"$cluster" up
hack/images.sh
go build -o dist/bin/bench-admission ./bench/admission
.cluster/enter dist/bin/bench-admission "$@"
