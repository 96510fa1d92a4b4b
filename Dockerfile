# One image with one program: `docker run IMAGE serve --role api`.
#
# The build downloads Debian packages and the crates of Cargo.lock, nothing else: crates are fetched first and compiled without a
# network. `ci/image` builds it without a container engine.
ARG RUST_IMAGE=rust:1.95-slim-bookworm
ARG DEBIAN_IMAGE=debian:bookworm-slim

FROM ${RUST_IMAGE} AS fetch
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends gcc libc6-dev make pkg-config libssl-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo fetch --locked

FROM fetch AS build
RUN --network=none cargo build --offline --locked --release --package tao-slurm

FROM ${DEBIAN_IMAGE}
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends libssl3 zlib1g ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --home-dir /var/lib/tao-slurm --shell /usr/sbin/nologin --uid 10001 tao-slurm
COPY --from=build /src/target/release/tao-slurm /usr/local/bin/tao-slurm
# A number, so that Kubernetes can verify that it is not root.
USER 10001:10001
ENV TAO_SLURM_DATA_DIR=/var/lib/tao-slurm TAO_SLURM_BIND=0.0.0.0:8080 TAO_SLURM_LOG_FORMAT=json
EXPOSE 8080
# Asks /readyz of this container, for the API and for a worker that serves it (docker-compose.yml).
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["tao-slurm", "ready"]
ENTRYPOINT ["tao-slurm"]
CMD ["serve"]
