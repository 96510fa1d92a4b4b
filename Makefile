# `make demo` and `make test` are all there is to know; the rest are their parts.

.PHONY: demo test simulate reliability bench chaos systemd-trial fuzz fuzz-api setup sandbox-up sandbox-down openapi config-example sql fmt

demo: ## From nothing to two jobs run on a real Slurm; ONCE=1 ends by itself
	@ONCE=$(ONCE) deploy/demo/demo

test: ## Every check there is
	@ci/test

reliability: ## The bars of docs/reliability.md in full size, on the sandbox: half an hour
	@deploy/sandbox/sandbox up
	@TAO_SLURM_FULL_BARS=1 cargo nextest run --locked --profile full --success-output immediate -p tao-slurm -E 'binary(sandbox) & test(bars::)'

simulate: ## The service in virtual time with everything going wrong; SEEDS=10000 histories, or SEED= one
	@SEEDS=$(SEEDS) SEED=$(if $(filter file,$(origin SEED)),,$(SEED)) ci/simulate

bench: ## Speed, beside what one would use instead, on the sandbox: ONLY=submission,latency some sections, QUICK=1 small sizes
	@ci/setup
	@cargo build --quiet --release --locked --package tao-slurm
	@cargo build --quiet --release --locked --package bench
	@target/release/bench $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick) $(BENCH)

DURATION ?= 60
SEED ?= 1
chaos: ## Break the service and the cluster at random while jobs flow: DURATION= seconds, SEED=; exit code 1 unless all is well
	@ci/setup
	@cargo build --quiet --locked --package tao-slurm --package chaos
	@target/debug/chaos --duration $(DURATION) --seed $(SEED) $(CHAOS)

systemd-trial: ## What docs/operations.md says of systemd, done in a container, with an upgrade while jobs run: FROM= the commit before, PROFILE=dev builds faster
	@FROM=$(FROM) PROFILE=$(PROFILE) deploy/systemd/trial

fuzz: ## Bytes at everything that reads foreign text: DURATION= seconds for each target, TARGET= one; needs a nightly compiler
	@DURATION=$(DURATION) TARGET=$(TARGET) fuzz/fuzz

fuzz-api: ## Every call of the API asked for what its document allows and does not: CASES= of each operation, 2000
	@ci/setup --test
	@CASES=$(CASES) fuzz/api/run

setup: ## What building needs from Debian
	@ci/setup

sandbox-up: ## The Slurm cluster in a box
	@deploy/sandbox/sandbox up

sandbox-down:
	@deploy/sandbox/sandbox down

openapi: ## Renew openapi/openapi.json from the code
	@cargo run --quiet --locked -- openapi > openapi/openapi.json.new && mv openapi/openapi.json.new openapi/openapi.json

config-example: ## Renew deploy/config.example.toml from the code
	@cargo run --quiet --locked -- check-config --example > deploy/config.example.toml.new && mv deploy/config.example.toml.new deploy/config.example.toml

sql: ## Renew what the SQL macros know of the schema; needs DATABASE_URL
	@ci/prepare-sql

fmt:
	@cargo fmt --all
