# SPDX-License-Identifier: Apache-2.0
#
# Two images, each from sources or from what "make build" has put into bin/:
#
#   docker build --target agent  -t diagon-agent .
#   docker build --target server -t diagon-server .
#   make image                   the targets *-prebuilt, by buildah, without a container engine
#
# The prebuilt targets come first: a builder that cannot skip stages then needs no Go image.

ARG BASE=docker.io/library/debian:bookworm-slim
ARG GO_BASE=docker.io/library/golang:1.26-bookworm

# The agent links statically; it needs the authorities that sign servers, and nothing else.
FROM ${BASE} AS agent-base
RUN apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log
# Manifests of the system that diagon replaces start the agent by this path.
RUN mkdir -p /mldiagnostics_extension_files/bin && ln -s /usr/bin/diagon /mldiagnostics_extension_files/bin/mldiagnostics_extension
ENTRYPOINT ["/usr/bin/diagon"]
CMD ["agent"]

FROM agent-base AS agent-prebuilt
COPY bin/diagon /usr/bin/diagon

# The database is C++.
FROM ${BASE} AS server-base
RUN apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends ca-certificates libstdc++6 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log \
 && mkdir -p /var/lib/diagon-server && chown 65532:65532 /var/lib/diagon-server
USER 65532:65532
VOLUME /var/lib/diagon-server
EXPOSE 7170 7171
ENTRYPOINT ["/usr/bin/diagon-server"]
CMD ["--http=0.0.0.0:7170", "--grpc=0.0.0.0:7171", "--data=/var/lib/diagon-server"]

FROM server-base AS server-prebuilt
COPY bin/diagon-server /usr/bin/diagon-server

FROM ${GO_BASE} AS build
WORKDIR /src
COPY . .
ARG VERSION=0.0.0-dev
ARG COMMIT=
RUN make build VERSION="${VERSION}" COMMIT="${COMMIT}"

FROM agent-base AS agent
COPY --from=build /src/bin/diagon /usr/bin/diagon

FROM server-base AS server
COPY --from=build /src/bin/diagon-server /usr/bin/diagon-server
