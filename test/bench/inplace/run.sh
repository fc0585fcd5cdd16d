#!/bin/bash
# make bench-inplace: Time in-place updates of 1, 10 and 40 pods against deleting and recreating the same pods, in the same run
# Flags of test/bench/inplace are passed on: -pods, -kinds, -rounds. A cluster that it had to bring up is taken down again; one that was
# there stays, with Refit installed.
exec "$(dirname "$0")/../on-cluster.sh" inplace refit "$@"
