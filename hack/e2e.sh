#!/bin/bash
# e2e.sh PATTERN [FLAGS...] puts the programs as they are now on this checkout's cluster, which has to be up, and runs the
# end-to-end tests whose names match. Only a program that has changed is rolled out.
set -euo pipefail
cd "$(dirname "$0")/.."
pattern=$1
shift
if [ ! -f .cluster/registry ]; then
	echo "there is no cluster: make cluster-up first (NODES=2 for the tests that need two nodes)" >&2
	exit 1
fi
# The tests are kept in a file, which is linked again only after a change, and are built while the images are. Lint runs vet.
tests=(go test -vet=off -ldflags=-s -o "$PWD/dist/bin/e2e.test")
mkdir -p dist/bin
set -m # a process group, all of which can be ended
hack/images.sh --tests &
set +m
images=$!
trap 'kill -- -"$images" 2>/dev/null || true' EXIT
matching=$("${tests[@]}" -list "${pattern%%/*}" ./test/e2e)
if [[ $matching != Test* ]]; then
	echo "no test of test/e2e has a name that matches $pattern" >&2
	exit 1
fi
wait "$images"
trap - EXIT
REFIT_E2E=1 KUBECONFIG=$PWD/.cluster/kubeconfig exec "${tests[@]}" -count=1 -v -timeout=30m -parallel=6 -run "$pattern" "$@" ./test/e2e
