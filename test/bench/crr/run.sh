#!/bin/bash
# make bench-crr: Time restarts on a real cluster against the same stops sent straight to CRI, in the same run
# Flags of test/bench/crr are passed on: -pairs, -rounds, -scenarios. A cluster that it had to bring up is taken down again;
# one that was there stays, with Refit installed.
exec "$(dirname "$0")/../on-cluster.sh" crr testapp "$@"
