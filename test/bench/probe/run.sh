#!/bin/bash
# make bench-probe: What pod probes cost the node, against as many readiness probes of kubelet in the same run
# Flags of test/bench/probe are passed on: -counts, -kinds, -periods, -floor, -window. A cluster that it had to bring up is
# taken down again; one that was there stays, with Refit installed.
exec "$(dirname "$0")/../on-cluster.sh" probe testapp "$@"
