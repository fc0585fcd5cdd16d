#!/bin/bash
# make test-vm: the demos on a fresh Debian with systemd and cgroup v2, in a virtual machine, before and after a power failure
# What is built, is built outside; the virtual machine sees the results. It uses KVM if a kernel starts with it, else QEMU's
# emulation, which takes twenty times the CPU. Logs are in dist/vm. With KEEP=1 the virtual machine is left running.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
logs=$root/dist/vm
memory=${MEMORY:-6G} cpus=${CPUS:-2}
targets=${TARGETS:-demo demo-sidecar demo-probe}
mkdir -p "$logs"
hack/packages.sh qemu-system-x86_64=qemu-system-x86 mmdebstrap=mmdebstrap ssh-keygen=openssh-client mkfs.ext4=e2fsprogs
image=$(test/vm/image.sh)

# The virtual machine has no C compiler, for which go build asks, and no repository.
export GOFLAGS=-buildvcs=false CGO_ENABLED=0
test/cluster/cluster.sh build
for target in $targets; do
	go build -o "dist/bin/$target" "./hack/$target"
done
(cd hack/images && go run . --programs-only)
(cd hack/chart && go build -o ../../dist/bin/helm helm.sh/helm/v4/cmd/helm)
go build -o dist/bin/kubectl-refit ./cmd/kubectl-refit
copy=$(mktemp -d)
vm=
trap 'if [ -n "$vm" ] && [ -z "${KEEP:-}" ]; then kill "$vm" 2>/dev/null || true; fi; rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -at "$copy"
mkdir -p "$copy/dist"
cp -a dist/bin dist/refit-* "$copy/dist"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/refit/cluster
modules=$(go env GOMODCACHE) builds=$(go env GOCACHE) goroot=$(go env GOROOT)
share() { # TAG FOLDER
	shares+=(-virtfs "local,path=$2,mount_tag=$1,security_model=none,readonly=on,multidevs=remap")
}
shares=()
share checkout "$copy"
share cluster "$cache"
share modules "$modules"
share builds "$builds"
share go "$goroot"

boot() { # ACCELERATOR
	rm -f "$logs/console"
	qemu-system-x86_64 -machine q35 -accel "$1" -cpu max -smp "$cpus" -m "$memory" -display none -monitor none -serial "file:$logs/console" \
		-drive "file=$image/disk,if=virtio,format=raw,snapshot=on,cache=unsafe" -kernel "$image/kernel" -initrd "$image/initrd" \
		-append "root=/dev/vda rw console=ttyS0 net.ifnames=0" -device virtio-rng-pci \
		-nic "user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:$port-:22" "${shares[@]}" 2>"$logs/qemu" &
	vm=$!
}
in_vm() {
	ssh -i "$image/key" -p "$port" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o ConnectTimeout=60 \
		-o ServerAliveInterval=60 -o ServerAliveCountMax=10 root@127.0.0.1 "$@"
}
seen() { # TEXT SECONDS: on the console
	for ((i = 0; i < $2; i++)); do
		grep -qs "$1" "$logs/console" && return
		kill -0 "$vm" 2>/dev/null || { cat "$logs/qemu" >&2; return 1; }
		sleep 1
	done
	return 1
}
came_up() { # BOOT_ID it had before
	local before=$1 id
	for ((i = 0; i < 120; i++)); do
		kill -0 "$vm" 2>/dev/null || { cat "$logs/qemu" >&2; return 1; }
		id=$(in_vm cat /proc/sys/kernel/random/boot_id 2>/dev/null) && [ "$id" != "$before" ] && { echo "$id"; return; }
		sleep 5
	done
	echo "the virtual machine did not come up: see $logs/console" >&2
	return 1
}
enter() {
	in_vm bash -s "$root" "$cache" "$modules" "$builds" "$goroot" <test/vm/guest.sh
}
try() { # TARGET LOG
	echo "[$((SECONDS))s] make $1"
	if ! in_vm "cd '$root' && env -u SSH_CLIENT GOFLAGS=-buildvcs=false TIMEOUT_FACTOR=$slow make $1" 2>&1 | tee "$logs/$2.log"; then
		in_vm "cd '$root' && tar cz .cluster/logs dist/log" >"$logs/logs.tar.gz" || true
		echo "make $1 failed; its logs are in $logs" >&2
		return 1
	fi
}

port=$((20000 + RANDOM % 9000))
slow=1
if [ -w /dev/kvm ]; then
	boot kvm
	seen 'Linux version' 20 || { kill "$vm" 2>/dev/null || true; wait "$vm" || true; vm=; }
fi
if [ -z "$vm" ]; then
	echo "KVM does not work here: emulating"
	slow=20
	boot tcg,thread=multi
fi
id=$(came_up none)
enter
in_vm '. /etc/os-release; echo "$PRETTY_NAME, Linux $(uname -r), $(systemctl --version | head -1), $(stat -fc %T /sys/fs/cgroup), $(nproc) CPUs"' | tee "$logs/machine"
for target in $targets; do
	try "$target" "$target"
done
echo "[$((SECONDS))s] power failure"
in_vm sync # etcd of the test cluster does not wait for the disk, see test/cluster/config: what it has written is to be there
in_vm 'echo 1 >/proc/sys/kernel/sysrq; (sleep 1; echo b >/proc/sysrq-trigger) >/dev/null 2>&1 &'
came_up "$id" >/dev/null
enter
try demo demo-after-power-failure
in_vm "cd '$root' && make cluster-down && ! ls -d /sys/fs/cgroup/refit-* 2>/dev/null"
echo "[$((SECONDS))s] passed: $targets, and demo after a power failure"
