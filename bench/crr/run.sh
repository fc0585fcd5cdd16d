#!/bin/bash
# make bench-crr: Time restarts on a real cluster against the same stops sent straight to CRI, in the same run
# Flags of bench/crr are passed on: -pairs, -rounds, -scenarios. A cluster that it had to bring up is taken down again;
# one that was there stays, with Refit installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
cluster=test/cluster/cluster.sh
[ -f .cluster/settings.json ] || trap '"$cluster" down' EXIT
"$cluster" up
hack/images.sh --extra testapp=test/e2e/testapp
go build -o dist/bin/bench-crr ./bench/crr
.cluster/enter dist/bin/bench-crr "$@"
