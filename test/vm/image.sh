#!/bin/bash
# image.sh makes the disk of the virtual machine from Debian's packages, of the release of this machine, and keeps it:
# FOLDER/disk, kernel, initrd, and FOLDER/key, the SSH key of its root. Prints FOLDER.
set -euo pipefail
cd "$(dirname "$0")"
. /etc/os-release
# What a fresh machine is expected to have (git, make), what the cluster would install with apt-get (iproute2, iptables),
# and what this test needs (a kernel, systemd, a way in).
packages=linux-image-amd64,systemd-sysv,dbus,udev,openssh-server,ca-certificates,git,make,iproute2,iptables
version=$(cat image.sh /etc/os-release | sha256sum | cut -c-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/refit/vm/$version
if [ -f "$folder/disk" ]; then
	echo "$folder"
	exit
fi
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
ssh-keygen -q -t ed25519 -N '' -C refit-test-vm -f "$work/key"
mmdebstrap --quiet --variant=apt --include="$packages" "$VERSION_CODENAME" "$work/root" >&2
root=$work/root
echo refit-vm >"$root/etc/hostname"
install -D -m 600 "$work/key.pub" "$root/root/.ssh/authorized_keys"
cat >"$root/etc/systemd/network/10-all.network" <<'END'
[Match]
Type=ether
[Network]
DHCP=ipv4
END
echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
echo '/dev/vda / ext4 defaults 0 1' >"$root/etc/fstab"
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf /lib/systemd/system/systemd-networkd.service "$root/etc/systemd/system/multi-user.target.wants/"
for unit in apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
cp -L "$root/vmlinuz" "$work/kernel"
cp -L "$root/initrd.img" "$work/initrd"
truncate -s 20G "$work/disk"
mkfs.ext4 -q -F -L refit-vm -d "$root" "$work/disk"
rm -rf "$root"
chmod 755 "$work"
mv "$work" "$folder"
echo "$folder"
