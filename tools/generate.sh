#!/bin/sh
# Regenerates deepcopy functions, CRDs and the API reference from the types in api, and what is rendered from deploy/chart.
set -eu
cd "$(dirname "$0")/.."
go tool -modfile=tools/go.mod controller-gen object paths=./api/... crd paths=./api/... output:crd:dir=deploy/crd
# A gRPC probe without a service stays without one, as OpenKruise stores it: the hashes that pods carry tell them apart. Its clients send null.
sed -i '/^ *service:$/{n;s/default: ""/nullable: true/}' deploy/crd/apps.kruise.io_sidecarsets.yaml
(cd hack/chart && go run .)
reference() { # FOLDER PAGE
	go tool -modfile=tools/go.mod crd-ref-docs --log-level=ERROR --source-path="$1" --config=tools/api-reference.yaml --renderer=markdown --output-path="$2"
	sed -i 's/Optional: \\{\\} <br \/>//' "$2"
}
reference api/v1beta1 docs/reference/api-apps-kruise-io.md
reference api/refit/v1alpha1 docs/reference/api-refit-dev.md
