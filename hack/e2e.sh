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
matching=$(go test -list "${pattern%%/*}" ./test/e2e)
if [[ $matching != Test* ]]; then
	echo "no test of test/e2e has a name that matches $pattern" >&2
	exit 1
fi
hack/images.sh --tests
REFIT_E2E=1 KUBECONFIG=$PWD/.cluster/kubeconfig exec go test -count=1 -v -parallel=8 -run "$pattern" "$@" ./test/e2e
