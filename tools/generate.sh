#!/bin/sh
# Regenerates deepcopy functions and CRDs from the types in api. controller-gen has no marker for a conversion
# webhook, so that stanza is put in afterwards.
set -eu
cd "$(dirname "$0")/.."
go tool -modfile=tools/go.mod controller-gen object paths=./api/... crd paths=./api/... output:crd:dir=deploy/crd
sed -i '/^  group: apps.kruise.io$/r tools/crd-conversion.yaml' \
	deploy/crd/apps.kruise.io_containerrecreaterequests.yaml
