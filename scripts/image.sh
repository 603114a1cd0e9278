#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# image.sh: images of agent and server around what is in bin/, as archives that
# "ctr images import", "skopeo copy" and "docker load" take: bin/images/*.tar.
#
#   BASE   image to build on: Debian 12; made by debootstrap where it cannot be pulled
#   TAG    of the images: dev
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/buildah.sh

command -v buildah >/dev/null || {
	echo "image: buildah is missing: apt-get install buildah, or docker build --target agent ." >&2
	exit 1
}
base=${BASE:-docker.io/library/debian:bookworm-slim}
if ! buildah_ pull --quiet --policy missing "$base" >/dev/null 2>"$images/pull.log"; then
	if [[ -n ${BASE:-} ]]; then
		cat "$images/pull.log" >&2
		exit 1
	fi
	base=localhost/debian:bookworm-slim
	if ! buildah_ inspect --type image "$base" >/dev/null 2>&1; then
		echo "image: no registry in reach; Debian's image is made by debootstrap"
		scripts/base-image.sh "$base"
	fi
fi

for program in agent server; do
	name=localhost/diagon-$program:${TAG:-dev}
	buildah_ bud --quiet --layers --build-arg BASE="$base" --target "$program-prebuilt" --tag "$name" . >/dev/null
	rm -f "$images/diagon-$program.tar"
	buildah_ push --quiet "$name" "oci-archive:$images/diagon-$program.tar:$name"
	echo "$name  $(du -m "$images/diagon-$program.tar" | cut -f1) MB packed  $images/diagon-$program.tar"
done
