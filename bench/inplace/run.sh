#!/bin/bash
# make bench-inplace: Time in-place updates of 1, 10 and 40 pods against deleting and recreating the same pods, in the same run
# Flags of bench/inplace are passed on: -pods, -kinds, -rounds. A cluster that it had to bring up is taken down again; one that was
# there stays, with Refit installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
cluster=test/cluster/cluster.sh
[ -f .cluster/settings.json ] || trap '"$cluster" down' EXIT
"$cluster" up
hack/images.sh
go build -o dist/bin/bench-inplace ./bench/inplace
.cluster/enter dist/bin/bench-inplace "$@"
