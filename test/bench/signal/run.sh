#!/bin/bash
# make bench-signal: Time finding and signalling a process against pkill and a plain loop over procfs
set -euo pipefail
cd "$(dirname "$0")/../../.."
hack/packages.sh pkill=procps
exec go run ./test/bench/signal "$@"
