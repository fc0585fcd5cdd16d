#!/bin/bash
# make bench-admission: Time the creation of pods with 100 SidecarSets, of which 2 select them, against pods without the webhook, in the same run
# Flags of test/bench/admission are passed on: -pods, -sets, -required. A cluster that it had to bring up is taken down again; one
# that was there stays, with Refit installed.
exec "$(dirname "$0")/../on-cluster.sh" admission refit "$@"
