#!/bin/bash
# fuzz.sh [PACKAGES...] runs every fuzz target of the packages (default: all of this module and of api) for FUZZTIME each.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-20s}
packages=("$@")
if [ ${#packages[@]} -eq 0 ]; then
	packages=(./... github.com/refit-project/refit/api/...)
fi
failed=0
# go test -fuzz takes one target of one package at a time.
while read -r package target; do
	echo "fuzz $package $target for $time"
	folder=$(go list -f '{{.Dir}}' "$package")
	(cd "$folder" && go test -run='^$' -fuzz="^$target\$" -fuzztime="$time" .) || failed=$((failed + 1))
done < <(go list -f '{{$p := .ImportPath}}{{range .TestGoFiles}}{{$.Dir}}/{{.}} {{$p}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$.Dir}}/{{.}} {{$p}}{{"\n"}}{{end}}' "${packages[@]}" |
	while read -r file package; do
		sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' "$file" | sed "s|^|$package |"
	done)
echo "$failed fuzz targets failed"
[ "$failed" -eq 0 ]
