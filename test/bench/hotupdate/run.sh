#!/bin/bash
# make bench-hotupdate: Time hot updates by refit-sidecar against curl, mv and kill in the same run
# See test/bench/hotupdate. Flags are passed on: -dir for another file system, -scale for more or fewer rounds.
set -euo pipefail
cd "$(dirname "$0")/../../.."
hack/packages.sh curl=curl
# As the image builds it.
CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags=grpcnotrace -ldflags="-s -w" -o dist/bin/refit-sidecar ./cmd/refit-sidecar
go build -o dist/bin/bench-hotupdate ./test/bench/hotupdate
exec dist/bin/bench-hotupdate "$@"
