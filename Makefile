# Every task of the project. `make` alone lists what there is.
# Paths are relative, so that a checkout in a folder with a space in its name works.

PYTHON ?= python3
ARGS ?=
ROOM ?=
UV_VERSION := 0.13.9

# Tests start thousands of processes: without the compiled files each would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

PY := .venv/bin/python
READY := .venv/.installed

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile
	@echo
	@echo '  ROOM=... names a room, e.g. make test ROOM=refunds; a room that is unknown lists them.'
	@echo '  ARGS="..." is passed on, e.g. make test ARGS="-k cancel"; PYTHON=python3.12 picks a Python.'

# --- Run it ------------------------------------------------------------------------------------

.PHONY: demo
demo: $(READY) ## See one Payment go from start to end over real HTTP
	@.venv/bin/payments demo $(ARGS)

.PHONY: test
test: $(READY) ## Run the tests that prove the product, in 5 minutes; or those of a ROOM=, or ARGS
ifneq ($(strip $(ROOM)),)
	@$(PY) -m tests.run_room $(ROOM) $(ARGS)
else ifeq ($(strip $(ARGS)),)
	@echo 'Some suites at a time, each shown when it ends: five minutes on two cores.'
	@$(MAKE) --no-print-directory --keep-going --jobs=$(SUITES_AT_A_TIME) --output-sync=target \
		$(PROOF)
else
	@$(PY) -m pytest $(ARGS)
endif

.PHONY: test-all
test-all: $(READY) ## Run every test, without coverage and the other checks
	@$(MAKE) --no-print-directory --keep-going --jobs=$(SUITES_AT_A_TIME) --output-sync=target \
		$(SUITES) MEASURED=

.PHONY: test-postgres
test-postgres: $(READY) ## Run all tests of PostgreSQL on one version of it; PG=18
	@PAYMENTS_TEST_EVERY_STORAGE=1 PAYMENTS_TEST_POSTGRES_MAJOR=$(or $(PG),18) \
		$(PY) -m pytest -m postgres $(ARGS)

# CI runs the first of these: suite-citus.
.PHONY: citus
citus: $(READY) ## Run on Citus, all tables distributed: storages, service, kills, a storm; ARGS="-k ..."
	@$(PY) -m pytest tests/storage/citus $(ARGS)
	@PAYMENTS_TEST_POSTGRES=citus PAYMENTS_TEST_STORAGES=postgresql \
		$(PY) -m pytest tests/service -m postgres $(ARGS)
	@$(PY) -m tests.outages --citus $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: test-storages
test-storages: $(READY) ## Run the tests of the service, of deployments and upgrades, each on both databases
	@PAYMENTS_TEST_EVERY_STORAGE=1 $(PY) -m pytest tests/service tests/deployment tests/upgrades \
		-k "not weak" $(ARGS)

# Two at a time: the tests take as long as all the rest.
.PHONY: quick suite-core
quick: $(READY) ## Check format, lint and tidiness, and run the tests of the core; 45 s
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target \
		suite-core tidy lint format-check
suite-core:
	@$(PY) -m pytest -q tests/core

# --- Check it ----------------------------------------------------------------------------------

.PHONY: check
check: format-check lint ## Everything that CI runs, cheap ones first
	@$(MAKE) --no-print-directory coverage BESIDE="types docs-check"

.PHONY: format
format: $(READY) ## Format the code and repair what lint can repair
	@$(PY) -m ruff check --fix-only --quiet .
	@$(PY) -m ruff format .

.PHONY: format-check
format-check: $(READY)
	@$(PY) -m ruff format --check .

.PHONY: lint
lint: $(READY) ## Lint the code
	@$(PY) -m ruff check .

.PHONY: types
types: $(READY) ## Check the types of both packages, and of the scripts
	@$(PY) -m mypy
	@$(PY) -m mypy -p docs.client -p benchmarks
	@$(PY) -m mypy docs/generate.py docs/openapi_compatibility.py tests/coverage_gate.py examples/custom_storage.py \
		examples/custom_bank/service.py examples/custom_bank/test_bank.py examples/custom_chain/play.py \
		examples/custom_kyc/service.py examples/custom_kyc/test_kyc.py examples/custom_onramp/service.py examples/custom_onramp/test_onramp.py \
		examples/custom_screening/service.py examples/custom_screening/test_screening.py \
		examples/element_shop.py examples/flask_shop.py examples/marketplace.py examples/mobile_backend.py \
		examples/subscription.py examples/webhook_receiver.py examples/fastapi_bridge.py examples/relay_to_nats.py

# Not in `check`: it needs Node.js, and tests/test_public_interface.py holds what it has found so far.
.PHONY: public-types
public-types: $(READY) ## Verify by pyright that the types of the public API are complete; needs Node.js; a minute
	@$(PY) -m tests.public_types

.PHONY: tidy
tidy: $(READY) ## Check import directions, names, sizes and words
	@$(PY) -m pytest -q tests/test_tidy.py

# `coverage erase` first: figures of an earlier run must not flatter this one. Every test runs once,
# the longest suites first, so that short ones are left for the end, when cores would be idle; what
# the gate does not need is not measured, because that would double its time. Tidiness is in
# suite-rest.
SUITES := suite-pages suite-storages suite-http suite-adapters suite-rest suite-measured \
	suite-chains suite-deployed suite-sqlite suite-fuzz suite-citus suite-reports suite-weak
# Suites wait for processes and clocks much of their time, so four keep two cores busy.
# The suites for a newcomer: the laws, every operation on the weak storage, every route over WSGI, the
# promises of the storages that need no server, webhooks, and the examples. No browser, no server's
# program and no storm.
PROOF := proof-rest proof-http proof-service proof-core
SUITES_AT_A_TIME ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
BESIDE ?=
MEASURED := coverage run -m
DEPLOYED := tests/deploy tests/deployment tests/observability tests/outages tests/upgrades \
	tests/going_live
LIFECYCLES := tests/webhooks/test_lifecycle.py tests/webhooks/test_machine.py \
	tests/webhooks/test_operations.py tests/webhooks/test_signing.py
GATED := tests/service/accounts tests/service/deposits tests/service/legacy \
	tests/service/test_damaged_rows.py tests/service/payments/offers tests/service/screening
APART := tests/core tests/storage tests/service tests/chains tests/http tests/cli \
	tests/broken_adapters tests/limiters tests/fuzz tests/public_reports $(DEPLOYED)
.PHONY: coverage $(SUITES) $(PROOF)
coverage: $(READY) ## Run the tests, and verify the promised branch coverage
	@$(PY) -m coverage erase
	@$(MAKE) --no-print-directory --keep-going --jobs=$(SUITES_AT_A_TIME) --output-sync=target \
		$(SUITES) $(BESIDE)
	@$(PY) -m coverage combine --quiet
	@$(PY) -m coverage json --quiet
	@$(PY) tests/coverage_gate.py build/coverage.json

proof-core:
	@$(PY) -m pytest tests/core tests/storage -m "not postgres and not slow" --ignore tests/storage/citus
proof-http:
	@$(PY) -m pytest tests/http -m "not postgres and not slow" --ignore-glob "*_in_chromium.py" \
		--ignore tests/http/hostile
proof-service:
	@$(PY) -m pytest tests/service -m "not slow" -k weak
proof-rest:
	@$(PY) -m pytest tests/webhooks tests/examples tests/testing tests/limiters \
		-m "not postgres and not slow" $(LIFECYCLES:%=--ignore %)
suite-measured:
	@$(PY) -m $(MEASURED) pytest tests/core tests/storage --ignore tests/storage/citus $(LIFECYCLES)
	@$(PY) -m $(MEASURED) pytest $(GATED) -k weak
suite-citus:
	@$(PY) -m $(MEASURED) pytest tests/storage/citus
suite-rest:
	@$(PY) -m pytest $(APART:%=--ignore %) $(LIFECYCLES:%=--ignore %)
suite-weak:
	@$(PY) -m pytest tests/service $(GATED:%=--ignore %) -k weak
suite-sqlite:
	@$(PY) -m pytest tests/service -k "sqlite and not weak"
suite-storages:
	@$(PY) -m pytest tests/service -k "not sqlite and not weak"
suite-chains:
	@$(PY) -m pytest tests/chains
suite-http:
	@$(PY) -m pytest tests/http --ignore-glob "*_in_chromium.py"
# A browser waits much of its time, so these run beside the others.
suite-pages:
	@$(PY) -m pytest $(wildcard tests/http/*/*_in_chromium.py)
suite-fuzz:
	@$(PY) -m pytest tests/fuzz
suite-reports:
	@$(PY) -m pytest tests/public_reports
suite-deployed:
	@$(PY) -m pytest $(DEPLOYED)
# A rehearsal waits for blocks nearly all of its time, so rehearsals run beside the others.
suite-adapters:
	@mkdir -p build
	@$(PY) -m pytest tests/cli/test_rehearse.py >build/rehearsals.log 2>&1 & rehearsals=$$!; \
		$(PY) -m pytest tests/cli tests/broken_adapters tests/limiters \
			--ignore tests/cli/test_rehearse.py; others=$$?; \
		wait $$rehearsals; ended=$$?; cat build/rehearsals.log; exit $$((others + ended))

.PHONY: docs
docs: $(READY) ## Write docs/reference from the code and build the pages into build/docs
	@$(PY) -m docs.generate
	@$(MAKE) --no-print-directory pages

# The contract changes only by additions: a release writes it once, and additions after that.
.PHONY: openapi
openapi: $(READY) ## Write the OpenAPI document of each contract, and the client from the newest
	@for date in $$($(PY) -m docs.openapi_compatibility --dates); do \
		$(PY) -m docs.openapi_compatibility $$date docs/reference/openapi-$$date.json || exit 1; \
	done
	@$(PY) -m docs.client

.PHONY: client
client: $(READY) ## Write the client's operations, answers and bodies from the OpenAPI document
	@$(PY) -m docs.client

.PHONY: docs-check
docs-check: $(READY)
	@$(PY) -m docs.generate --check
	@$(MAKE) --no-print-directory pages

.PHONY: pages
pages: $(READY)
	@$(PY) -m sphinx --fail-on-warning --keep-going -q docs build/docs
	@echo "Pages: build/docs/index.html"

# The build verifies links between pages; tests/test_docs.py follows all others, and runs the Python of
# every page, and tests/cli/test_pages.py its shell.

# --- Release it --------------------------------------------------------------------------------

.PHONY: release-check
release-check: $(READY) ## Build wheel and sdist, and run both on each Python there is; ARGS=3.12 is one
	@$(PY) -m tests.release_check $(ARGS)

# What a deployment runs: the pinned dependencies of all extras, without those of development.
.PHONY: sbom
sbom: $(READY) ## Write the bill of materials (CycloneDX) and the licences into build/, and compare it with what is installed
	@$(PY) -m uv venv --quiet --clear build/runtime
	@$(PY) -m uv pip install --quiet --python build/runtime/bin/python --constraint constraints.txt '.[all]'
	@$(PY) -m cyclonedx_py environment build/runtime --pyproject pyproject.toml --output-reproducible \
		--output-file build/sbom.json
	@$(PY) -m tests.licences build/sbom.json build/runtime > build/licences.md
	@echo "Bill of materials: build/sbom.json; licences: build/licences.md"

# BASE= names the image to begin with. Where no registry of images can be reached, BASE=debian makes
# one from Debian's packages. The settings of pip and the certificates of this machine are used.
BASE ?= docker.io/library/debian:trixie-slim
IMAGE ?= localhost/payments-core:latest
.PHONY: image
image: ## Build the image of deploy/container with buildah; BASE= IMAGE=
	@BASE="$(BASE)" IMAGE="$(IMAGE)" UV_VERSION="$(UV_VERSION)" deploy/container/build

.PHONY: image-check
image-check: $(READY) ## Run the image in the topology of compose.yml, under load through an upgrade; IMAGE=
	@$(PY) -m tests.containers --image "$(IMAGE)" $(ARGS)

# The defaults are in the program: a variable that is not given is not passed on.
.PHONY: soak
soak: $(READY) ## Play 1,000,000 steps against every invariant; STEPS= SEED= JOBS= ONLY= PART=banks|misdirected|values|early
	@$(PY) -m tests.service.model.soak \
		$(if $(STEPS),--steps $(STEPS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(JOBS),--jobs $(JOBS)) $(if $(ONLY),--only $(ONLY)) $(if $(PART),--part $(PART))

.PHONY: payout-kills
payout-kills: $(READY) ## Kill -9 workers between any two calls to a bank; SEED= PAYMENTS=25
	@$(PY) -m tests.service.payments.payouts.kills \
		$(if $(SEED),--seed $(SEED)) $(if $(PAYMENTS),--payments $(PAYMENTS))

.PHONY: onramp-kills
onramp-kills: $(READY) ## The same for transfers to on-ramps; SEED= PAYMENTS=25
	@$(PY) -m tests.service.onramps.kills \
		$(if $(SEED),--seed $(SEED)) $(if $(PAYMENTS),--payments $(PAYMENTS))

.PHONY: bank-faults
bank-faults: $(READY) ## Let the storage fail at every call of payouts and on-ramps
	@EVERY_CALL=1 $(PY) -m pytest -q --timeout=0 \
		tests/service/payments/payouts/test_crashes.py tests/service/onramps/test_onramp_crashes.py

.PHONY: fuzz
fuzz: $(READY) ## Send made-up requests to every route for MINUTES=20; SEED= plays one again
	@$(PY) -m tests.fuzz $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

.PHONY: kills
kills: $(READY) ## Kill -9 a worker on a real node 100 times, by steps and by threads; KILLS= SEED=
	@PAYMENTS_KILLS=$(or $(KILLS),100) $(if $(SEED),PAYMENTS_KILL_SEED=$(SEED)) \
		$(PY) -m pytest -q -s tests/chains/evm/test_kills.py

.PHONY: cctp-kills
cctp-kills: $(READY) ## Kill -9 two CCTP routers again and again between burn and mint; KILLS=200 SEED=
	@PAYMENTS_KILLS=$(or $(KILLS),200) $(if $(SEED),PAYMENTS_KILL_SEED=$(SEED)) \
		$(PY) -m pytest -q -s --timeout=0 tests/routers/cctp/test_kills.py

.PHONY: sandbox-kills
sandbox-kills: $(READY) ## Kill -9 a sandbox at random points of Payments, and time their success; KILLS=30 SEED=
	@PAYMENTS_KILLS=$(or $(KILLS),30) $(if $(SEED),PAYMENTS_KILL_SEED=$(SEED)) \
		$(PY) -m pytest -q -s tests/cli/test_kills.py

.PHONY: webhook-kills
webhook-kills: $(READY) ## Kill -9 a worker among its webhooks; KILLS=20 SEED=
	@PAYMENTS_KILLS=$(or $(KILLS),20) $(if $(SEED),PAYMENTS_KILL_SEED=$(SEED)) \
		$(PY) -m pytest -q -s tests/webhooks/test_webhook_kills.py

.PHONY: evm-simulation
evm-simulation: $(READY) ## Simulate an EVM chain at random, with pools, spikes, reorgs, crashes; MINUTES=20 SEED=
	@$(PY) -m tests.chains.evm.simulation $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(ARGS)

.PHONY: outages
outages: $(READY) ## Kill -9 a whole deployment's parts under load, database too; MINUTES=5 SEED=
	@$(PY) -m tests.outages $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(ARGS)

.PHONY: going-live
going-live: $(READY) ## Play customers through a production deployment, killed at every provider call; CUSTOMERS=25 SEED= STEPS=
	@$(PY) -m tests.going_live $(if $(CUSTOMERS),--customers $(CUSTOMERS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(STEPS),--steps "$(STEPS)") $(if $(KEEP),--keep $(KEEP)) $(ARGS)

.PHONY: storm
storm: $(READY) ## Attack the server with hostile clients, 20 s for each attack; STORM_S=
	@$(PY) -m tests.http.hostile.storm $(if $(STORM_S),--seconds $(STORM_S))

# --- Measure it --------------------------------------------------------------------------------

.PHONY: bench
bench: $(READY) ## Measure the pipeline, storages, servers, webhooks, limiters, an EVM chain and Citus; half an hour
	@$(PY) -m benchmarks.reach
	@$(PY) -m benchmarks.pipeline $(ARGS)
	@$(PY) -m benchmarks.sqlite_group_commit
	@$(PY) -m benchmarks.serve_postgres
	@$(PY) -m benchmarks.audit
	@$(PY) -m benchmarks.costs
	@$(PY) -m benchmarks.servers
	@$(PY) -m benchmarks.servers_hostile
	@$(PY) -m benchmarks.copy
	@$(PY) -m benchmarks.webhooks
	@$(PY) -m benchmarks.webhook_claims
	@$(PY) -m benchmarks.claims
	@$(PY) -m benchmarks.webhook_transports
	@$(PY) -m benchmarks.webhook_verify
	@$(PY) -m benchmarks.dashboard
	@$(PY) -m benchmarks.payment_indexes
	@$(PY) -m benchmarks.limiter
	@$(PY) -m benchmarks.fairness
	@$(PY) -m benchmarks.evm
	@$(PY) -m benchmarks.signers
	@$(PY) -m benchmarks.citus

# Neither is in `check`: on a busy machine they would measure the other work.
.PHONY: walletconnect
walletconnect: $(READY) ## Pay with WalletConnect's own script, FILE, a stand-in relay and anvil; needs chromium; half a minute
	@$(PY) -m tests.http.pages.real_walletconnect $(FILE)

.PHONY: lighthouse
lighthouse: $(READY) ## Run Lighthouse on the checkout page and on the inbox; needs Node.js and chromium; one minute
	@$(PY) -m tests.http.pages.lighthouse

.PHONY: timing
timing: $(READY) ## Measure that refusals cannot be distinguished by their time; one minute
	@$(PY) -m tests.timing $(ARGS)

# --- Set it up ---------------------------------------------------------------------------------

.PHONY: constraints
constraints: $(READY) ## Pin the dependencies again; ARGS="--upgrade" takes newer ones
	@$(PY) -m uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
		--all-extras --group dev --no-header --no-emit-index-url --generate-hashes \
		--output-file constraints.txt $(ARGS)

.PHONY: catalogs
catalogs: $(READY) ## Add new texts of the pages to their catalogs
	@$(PY) -m docs.catalogs

.PHONY: gallery
gallery: $(READY) ## Take pictures of the checkout page and of the dashboard; needs chromium
	@$(PY) -m tests.http.pages.gallery
	@$(PY) -m tests.http.pages.specimen
	@$(PY) -m tests.http.dashboard.gallery

.PHONY: contracts
contracts: ## Compile contracts/src into payments_core/chains/evm/contracts.json; needs Node.js
	@node contracts/build.mjs

.PHONY: clean
clean: ## Remove what the targets made, .venv too; sandbox data stays
	@rm -rf .venv build dist .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The library runs on newer Pythons; some of the tools of the tests have no wheels for them yet.
# `--python` is named because an active environment would otherwise receive the packages.
$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "payments-core needs Python 3.11 to 3.14, and '$(PYTHON)' was not found; say make PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 15) else "A checkout of payments-core needs Python 3.11 to 3.14, and $(PYTHON) is %d.%d; say make PYTHON=python3.11, for example." % sys.version_info[:2])'
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@echo "Installing the pinned dependencies into .venv"
	@$(PY) -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(PY) -m uv pip install --quiet --python $(PY) --require-hashes -r constraints.txt
	@$(PY) -m uv pip install --quiet --python $(PY) --no-deps --no-build-isolation -e .
	@touch $@
