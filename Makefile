# `make demo` shows the service; `make test` runs every check. The other targets are parts of them, or longer runs.

.PHONY: demo test simulate reliability bench chaos systemd-trial release release-trial fuzz fuzz-api setup sandbox-up sandbox-down openapi python-client pictures config-example sql fmt

demo: ## Run two jobs on a real Slurm cluster on this machine; ONCE=1 stops by itself
	@ONCE=$(ONCE) deploy/demo/demo

test: ## Run every check (40 minutes on two cores)
	@ci/test

reliability: ## Run the reliability tests in full size (an hour)
	@deploy/sandbox/sandbox up
	@TAO_SLURM_FULL_BARS=1 cargo nextest run --locked --profile full --success-output immediate -p tao-slurm -E 'binary(sandbox) & (test(bars::) + test(/^(restarts|ahead|evaluation)::/) + test(many_megabytes) + test(under_a_limit_of_requests))'

simulate: ## Simulate SEEDS=10000 random histories of the worker in virtual time, or one with SEED=
	@SEEDS=$(SEEDS) SEED=$(if $(filter file,$(origin SEED)),,$(SEED)) ci/simulate

bench: ## Measure performance; ONLY=submission,latency selects sections, QUICK=1 uses small sizes
	@ci/setup
	@cargo build --quiet --release --locked --package tao-slurm
	@cargo build --quiet --release --locked --package bench
	@target/release/bench $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick) $(BENCH)

DURATION ?= 60
SEED ?= 1
chaos: ## Inject random faults while jobs run, then audit them; DURATION= seconds, SEED=
	@ci/setup
	@cargo build --quiet --locked --workspace --bin tao-slurm --bin chaos
	@target/debug/chaos --duration $(DURATION) --seed $(SEED) $(CHAOS)

systemd-trial: ## Test the systemd deployment and an upgrade in a container; FROM= the earlier commit, PROFILE=dev builds faster
	@FROM=$(FROM) PROFILE=$(PROFILE) deploy/systemd/trial

release: ## Build programs for any Linux, Debian packages, an image's context, a chart, an SBOM and checksums; ARCH="amd64 arm64"
	@ci/setup --release
	@deploy/release/build $(ARCH)

release-trial: ## Start the programs of `make release` in a bare Debian 11, 12 and 13
	@ci/setup --release
	@deploy/release/trial

fuzz: ## Fuzz the parsers; DURATION= seconds for each target, TARGET= one; needs a nightly compiler
	@DURATION=$(DURATION) TARGET=$(TARGET) fuzz/fuzz

fuzz-api: ## Fuzz the API against its OpenAPI document; CASES= for each operation (2000)
	@ci/setup --test
	@CASES=$(CASES) fuzz/api/run

setup: ## Install the Debian packages that a build needs
	@ci/setup

sandbox-up: ## Start the sandbox: a Slurm cluster on this machine
	@deploy/sandbox/sandbox up

sandbox-down: ## Stop the sandbox
	@deploy/sandbox/sandbox down

openapi: ## Write openapi/openapi.json from the code
	@cargo run --quiet --locked -- openapi > openapi/openapi.json.new && mv openapi/openapi.json.new openapi/openapi.json

python-client: ## Build the wheel of the Python client in target/python-client
	@ci/setup --test
	@clients/python/build $(CURDIR)/target/python-client

pictures: ## Write docs/pictures, with the sandbox and Chromium
	@ci/setup --test
	@deploy/sandbox/sandbox up
	@set -a && . $${SANDBOX_DIR:-$$PWD/.sandbox}/env && set +a && SQLX_OFFLINE=true PICTURES=docs/pictures cargo nextest run --locked -p tao-slurm -E 'test(the_pictures_of_the_documentation)'

config-example: ## Write deploy/config.example.toml from the code
	@cargo run --quiet --locked -- check-config --example > deploy/config.example.toml.new && mv deploy/config.example.toml.new deploy/config.example.toml

sql: ## Write the query cache of the SQL macros; needs DATABASE_URL
	@ci/prepare-sql

fmt: ## Format the code
	@cargo fmt --all
