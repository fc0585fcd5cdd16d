#!/bin/bash
# packages.sh COMMAND=PACKAGES... installs the Debian packages, separated by spaces, whose command is missing.
set -euo pipefail
missing=()
for pair in "$@"; do
	command -v "${pair%%=*}" >/dev/null && continue
	read -ra packages <<<"${pair#*=}"
	missing+=("${packages[@]}")
done
if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
