# One image, one binary; `docker run IMAGE serve --role api` and so on.
#
# The build fetches its crates first and then compiles without a network, which proves that nothing else is
# downloaded: `docker build --network=none` works from the second stage on.

FROM docker.io/library/rust:1.95-slim-bookworm AS fetch
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends gcc make pkg-config libssl-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo fetch --locked

FROM fetch AS build
RUN --network=none cargo build --offline --locked --release --package tao-slurm

FROM docker.io/library/debian:bookworm-slim
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends libssl3 ca-certificates curl \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --create-home --home-dir /var/lib/tao-slurm --uid 10001 tao-slurm
COPY --from=build /src/target/release/tao-slurm /usr/local/bin/tao-slurm
USER tao-slurm
ENV TAO_SLURM_DATA_DIR=/var/lib/tao-slurm TAO_SLURM_BIND=0.0.0.0:8080 TAO_SLURM_LOG_FORMAT=json
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s CMD ["curl", "-fsS", "http://127.0.0.1:8080/livez"]
ENTRYPOINT ["tao-slurm"]
CMD ["serve"]
