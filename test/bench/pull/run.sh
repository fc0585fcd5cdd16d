#!/bin/bash
# make bench-pull: Time ImagePullJobs of 10 images against ctr images pull, 1, 3 and 5 at a time, in the same run
# Flags of test/bench/pull are passed on: -sizes, -parallel, -rounds. A cluster that it had to bring up is taken down again; one
# that was there stays, with Refit installed.
exec "$(dirname "$0")/../on-cluster.sh" pull refit "$@"
