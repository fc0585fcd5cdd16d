#!/bin/bash
# guest.sh CHECKOUT CACHE MODULES BUILDS GOROOT runs in the virtual machine: it puts this machine's copies of the checkout, of
# built programs and of Go's caches where they are outside, so that nothing is built or downloaded again. What is
# written there stays in the virtual machine.
set -euo pipefail
checkout=$1 cache=$2 modules=$3 builds=$4 goroot=$5
share() { # TAG FOLDER: as it is outside, for reading
	mkdir -p "$2"
	mountpoint -q "$2" || mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=1048576 "$1" "$2"
}
over() { # TAG FOLDER: the same, to be written to
	share "$1" "/mnt/$1"
	mkdir -p "$2" "/var/overlay/$1/upper" "/var/overlay/$1/work"
	mountpoint -q "$2" || mount -t overlay -o "lowerdir=/mnt/$1,upperdir=/var/overlay/$1/upper,workdir=/var/overlay/$1/work" overlay "$2"
}
share go "$goroot"
ln -sf "$goroot/bin/go" /usr/local/bin/go
over modules "$modules"
over builds "$builds"
share cluster /mnt/cluster
share checkout /mnt/checkout
if [ ! -d "$cache" ]; then # programs of the cluster are read all the time: on the disk
	mkdir -p "$cache"
	cp -a /mnt/cluster/*-*/ "$cache" # not what clusters of the other machine have noted there
fi
if [ ! -d "$checkout" ]; then
	mkdir -p "$checkout"
	cp -a /mnt/checkout/. "$checkout"
fi
