#!/bin/bash
# run.sh PROGRAM ARGS... builds hack/PROGRAM and becomes it, so that a signal reaches it and nothing in between.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1
shift
if [ ! -e "dist/bin/$program" ]; then
	echo "building hack/$program; on a machine that has not built it before this takes a minute"
fi
# With the flags of the images, so that what both import is compiled once. The compiler's garbage collector runs less often.
CGO_ENABLED=0 GOGC=400 go build -trimpath -o "dist/bin/$program" "./hack/$program"
exec "dist/bin/$program" "$@"
