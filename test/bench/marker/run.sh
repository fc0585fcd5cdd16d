#!/bin/bash
# make bench-marker: Count what refit-manager writes for a PodProbeMarker with 500 nodes and 5,000 pods, simulated by kwok
# See test/bench/marker. Flags are passed on: -nodes, -pods, -flips. A cluster that it had to bring up is taken down again; on
# one that was there refit-manager pauses meanwhile.
exec "$(dirname "$0")/../on-cluster.sh" marker fakenodes "$@"
