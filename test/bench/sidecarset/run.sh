#!/bin/bash
# make bench-sidecarset: What rollouts and readiness flips cost refit-manager with 100 SidecarSets and 10,000 pods, simulated by kwok
# See test/bench/sidecarset. Flags are passed on: -nodes, -pods, -workloads, -sets. A cluster that it had to bring up is taken down
# again. Refit must not be installed on one that was there: its webhooks need the manager that this replaces.
exec "$(dirname "$0")/../on-cluster.sh" sidecarset fakenodes "$@"
