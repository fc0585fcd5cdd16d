#!/bin/bash
# make bench-memory: What a node and a pod are charged for the daemon, the sidecar and the manager: idle, and after requests
# Flags of test/bench/memory are passed on: -pods, -requests, -probes, -after. A cluster that it had to bring up is taken down again; one
# that was there stays, with Refit installed.
exec "$(dirname "$0")/../on-cluster.sh" memory testapp "$@"
