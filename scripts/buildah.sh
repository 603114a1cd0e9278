#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced: buildah as it works without root's daemon, without overlayfs and in a
# container: files copied instead of layered, chroot instead of a runtime.

images=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bin/images
export BUILDAH_ISOLATION=chroot
mkdir -p "$images"

# Hidden, so that the go tool does not look for packages in there.
buildah_() { buildah --storage-driver vfs --root "$images/.storage" --runroot "$images/.run" "$@"; }
