#!/bin/sh
# Regenerates deepcopy functions and CRDs from the types in api, and what is rendered from deploy/chart.
set -eu
cd "$(dirname "$0")/.."
go tool -modfile=tools/go.mod controller-gen object paths=./api/... crd paths=./api/... output:crd:dir=deploy/crd
(cd hack/chart && go run .)
