#!/bin/bash
# on-cluster.sh NAME NEEDS ARGS... runs test/bench/NAME on the checkout's test cluster, inside its network. A cluster that it had
# to bring up is taken down again. NEEDS is what is built before:
#   refit      the images of Refit
#   testapp    these, and the image of test/e2e/testapp
#   fakenodes  refit-manager and kwok as programs, which run beside the cluster
set -euo pipefail
cd "$(dirname "$0")/../.."
name=$1 needs=$2
shift 2
cluster=test/cluster/cluster.sh
[ -f .cluster/settings.json ] || trap '"$cluster" down' EXIT
"$cluster" up
case $needs in
refit) hack/images.sh ;;
testapp) hack/images.sh --extra testapp=test/e2e/testapp ;;
fakenodes)
	kwok=$(cd test/bench/fakenodes/components/kwok && go mod download sigs.k8s.io/kwok && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
	(cd test/bench/fakenodes/components/kwok && go build -ldflags="-s -w" -o ../../../../../dist/bin/kwok sigs.k8s.io/kwok/cmd/kwok)
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags=grpcnotrace -ldflags="-s -w" -o dist/bin/refit-manager ./cmd/refit-manager
	set -- -stages "$kwok/kustomize/stage" "$@"
	;;
*) echo "on-cluster.sh: unknown NEEDS $needs" >&2 && exit 2 ;;
esac
go build -o "dist/bin/bench-$name" "./test/bench/$name"
.cluster/enter "dist/bin/bench-$name" "$@"
