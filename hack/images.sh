#!/bin/bash
# Builds the images into dist/images. Pushes them to IMAGE_REPO, else to the registry of this checkout's cluster, if it
# is up, and notes in dist/images/pushed what they are called there. TAG is their tag (default dev).
# --hot-upgrade, as the first argument, adds the images of examples/hotupgrade; --tests adds all that the end-to-end tests need.
set -euo pipefail
cd "$(dirname "$0")/.."
hot=hotupgrade-load=examples/hotupgrade/load
for name in hotupgrade hotupgrade-next hotupgrade-idle; do hot+=,$name=examples/hotupgrade; done
case ${1:-} in
--hot-upgrade) shift && set -- --extra "$hot" "$@" ;;
--tests) shift && set -- --extra "testapp=test/e2e/testapp,$hot" "$@" ;;
esac
repo=${IMAGE_REPO:-}
if [ -z "$repo" ] && [ -f .cluster/registry ]; then
	repo=$(<.cluster/registry)/refit-project
fi
mkdir -p dist/images
rm -f dist/images/pushed
(cd hack/images && CGO_ENABLED=0 GOGC=400 go run -trimpath . --version "${TAG:-dev}" ${repo:+--push "$repo"} "$@") | tee dist/images/log
if [ -n "$repo" ]; then
	sed -n 's/^pushed //p' dist/images/log >dist/images/pushed
fi
rm dist/images/log
