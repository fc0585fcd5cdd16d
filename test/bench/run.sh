#!/bin/bash
# run.sh NAME ARGS... runs the benchmark test/bench/NAME with these flags; -h lists them. Except hotupdate and signal they run on the
# checkout's test cluster, inside its network. A cluster that is not up is started and removed again; one that is up keeps Refit. For
# marker, policies and sidecarset refit-manager runs beside the cluster: an installed one pauses, and for policies and sidecarset Refit
# must not be installed. run.sh all runs every benchmark on a cluster of its own, also after one that fails, and writes the tables of
# docs/benchmarks.md.
#
# make bench-admission: Time the creation of pods with 100 SidecarSets, of which 2 select them, against pods without the webhook, in the same run
# make bench-crr: Time restarts on a real cluster against the same stops sent straight to CRI, in the same run
# make bench-hotupdate: Time hot updates by refit-sidecar against curl, mv and kill in the same run
# make bench-inplace: Time in-place updates of 1, 10 and 40 pods against deleting and recreating the same pods, in the same run
# make bench-marker: Count what refit-manager writes for a PodProbeMarker with 500 nodes and 5,000 pods, simulated by kwok
# make bench-memory: What a node and a pod are charged for the daemon, the sidecar and the manager: idle, and after requests
# make bench-policies: What an update of 10,000 pods by an InPlaceUpdatePolicy and readiness flips cost refit-manager, simulated by kwok
# make bench-probe: What pod probes cost the node, against as many readiness probes of kubelet in the same run
# make bench-pull: Time ImagePullJobs of 10 images against ctr images pull, 1, 3 and 5 at a time, in the same run
# make bench-sidecarset: What rollouts and readiness flips cost refit-manager with 100 SidecarSets and 10,000 pods, simulated by kwok
# make bench-signal: Time finding and signalling a process against pkill and a plain loop over procfs
# make bench-workload: Time updates of a Deployment in place, by an InPlaceUpdatePolicy, against its own rolling updates, in the same run
set -euo pipefail
cd "$(dirname "$0")/../.."
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath" # as the images, so that what all import is compiled once
name=$1
shift
if [ "$name" = all ]; then
	[ ! -f .cluster/settings.json ] || { echo "make bench: a cluster is up; make cluster-down first" >&2 && exit 1; }
	failed=
	for name in admission crr hotupdate inplace marker memory policies probe pull sidecarset signal workload; do
		echo "== $name"
		test/bench/run.sh "$name" || failed="$failed $name"
	done
	go run ./test/bench/document
	[ -z "$failed" ] || { echo "make bench: without a result:$failed" >&2 && exit 1; }
	exit
fi
# program builds dist/bin/refit-NAME as its image has it.
program() {
	go build -buildvcs=false -tags=grpcnotrace -ldflags="-s -w" -o "dist/bin/refit-$1" "./cmd/refit-$1"
}
enter=.cluster/enter
case $name in
hotupdate)
	hack/packages.sh curl=curl
	program sidecar
	enter=
	;;
signal)
	hack/packages.sh pkill=procps
	enter=
	;;
*)
	[ -f .cluster/settings.json ] || trap 'test/cluster/cluster.sh down' EXIT
	test/cluster/cluster.sh up
	;;
esac
case $name in
admission | inplace | pull | workload) hack/images.sh ;;
crr | memory | probe) hack/images.sh --extra testapp=test/e2e/testapp ;;
marker | policies | sidecarset)
	kwok=$(cd test/bench/fakenodes/components/kwok && go mod download sigs.k8s.io/kwok && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
	(cd test/bench/fakenodes/components/kwok && go build -ldflags="-s -w" -o ../../../../../dist/bin/kwok sigs.k8s.io/kwok/cmd/kwok)
	program manager
	set -- -stages "$kwok/kustomize/stage" "$@"
	;;
esac
go build -o "dist/bin/bench-$name" "./test/bench/$name"
$enter "dist/bin/bench-$name" "$@"
