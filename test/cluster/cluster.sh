#!/bin/sh
# Runs the cluster program of this checkout: cluster.sh up, down, status, ...; cluster.sh --help says more.
cd "$(dirname "$0")" && exec go run ./cmd/cluster "$@"
