#!/bin/bash
# fuzz.sh [FOLDERS...] runs every fuzz target below the folders (default: of all modules) for FUZZTIME each.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-20s}
failed=0
if ! found=$(git grep --untracked -HE '^func Fuzz[A-Za-z0-9_]+\(' -- "${@:-.}"); then
	echo "fuzz.sh: no fuzz targets below ${*:-.}" >&2
	exit 1
fi
targets=$(sed -nE 's/^(.*)\/[^/]*_test\.go:func (Fuzz[A-Za-z0-9_]+)\(.*/\1 \2/p' <<<"$found")
# go test -fuzz takes one target of one package at a time.
while read -r folder target; do
	echo "fuzz $folder $target for $time"
	(cd "$folder" && go test -run='^$' -fuzz="^$target\$" -fuzztime="$time" .) || failed=$((failed + 1))
done <<<"$targets"
echo "$failed fuzz targets failed"
[ "$failed" -eq 0 ]
