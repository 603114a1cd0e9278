#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# base-image.sh NAME: makes Debian 12 an image in buildah's storage, by debootstrap,
# where no registry can be reached. Prints nothing but errors.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/buildah.sh

for program in debootstrap buildah; do
	command -v "$program" >/dev/null || {
		echo "base-image: $program is missing: apt-get install $program" >&2
		exit 1
	}
done
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase bookworm "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >&2
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale,info}/*
container=$(buildah_ from scratch)
buildah_ add -q "$container" "$root" / >/dev/null
buildah_ commit -q --rm "$container" "$1" >/dev/null
