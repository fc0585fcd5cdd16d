#!/bin/sh
# Runs the cluster program of this checkout: cluster.sh up, down, status, ...; cluster.sh --help says more.
cd "$(dirname "$0")" && CGO_ENABLED=0 exec go run -trimpath ./cmd/cluster "$@"
