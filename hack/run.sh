#!/bin/bash
# run.sh PROGRAM ARGS... builds hack/PROGRAM and becomes it, so that a signal reaches it and nothing in between.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1
shift
go build -o "dist/bin/$program" "./hack/$program"
exec "dist/bin/$program" "$@"
