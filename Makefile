# One verb a line; `make` alone lists them. HOST and PORT say where `make serve` listens, and every TOKENROOF_ variable
# reaches it too. ARGS goes to pytest. EXTRAS=nvidia or EXTRAS=amd installs the readings of those cards where
# no driver was found.
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON := .venv/bin/python
RIVAL := .venv-aiconfigurator

ifneq ($(HOST),)
export TOKENROOF_HOST := $(HOST)
endif
ifneq ($(PORT),)
export TOKENROOF_PORT := $(PORT)
endif
export EXTRAS

.PHONY: help setup setup-dev assets serve test golden check check-text fix bench bench-predictors calibrate migrate lock docker clean

help: ## List the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' Makefile

setup: ## Make .venv and install what the server needs
	@sh scripts/setup.sh

setup-dev:
	@sh scripts/setup.sh dev

assets: setup ## Fetch the browser libraries; compress every static file
	@$(PYTHON) -m app.cli assets

serve: assets ## Migrate the database and serve (HOST, PORT)
	@exec $(PYTHON) -m app.cli serve

test: check-text ## Check and run every test, those in a browser too, on all cores (ARGS="-k name")
	@$(PYTHON) -m app.cli assets --dev
	@sh scripts/test.sh $(ARGS)

# ARGS="--record" writes the digests anew, ARGS="--show ID" prints one answer.
golden: setup-dev ## Compare some 4,000 answers with those recorded, to the last bit (ARGS="--sample")
	@$(PYTHON) -m app.cli assets
	@$(PYTHON) -m golden $(ARGS)

check: check-text ## Format, lint, types, import rules, sizes
	@$(PYTHON) -m mypy --no-error-summary

# What takes a second. The types take half a minute, which `test` spends beside the tests.
check-text: setup-dev
	@$(PYTHON) -m ruff format --check --quiet .
	@$(PYTHON) -m ruff check --quiet .
	@.venv/bin/lint-imports --no-logo
	@$(PYTHON) scripts/check_sizes.py

fix: setup-dev ## Format and repair what ruff can
	@$(PYTHON) -m ruff format --quiet .
	@$(PYTHON) -m ruff check --quiet --fix .

bench: setup-dev ## Run the benchmarks
	@$(PYTHON) -m benchmarks

bench-predictors: setup-dev $(RIVAL)/.installed ## Compare with aiconfigurator and bare rooflines on measurements
	@$(PYTHON) -m benchmarks.predictors

# An environment of its own: nothing of it is ever imported by the product or its tests. Without it the benchmark
# says so, and has the other predictors.
$(RIVAL)/.installed: requirements/aiconfigurator.txt
	@$(PYTHON) -m venv --clear $(RIVAL)
	@if $(RIVAL)/bin/python -m pip install -q --disable-pip-version-check --no-deps -r requirements/aiconfigurator.txt; \
	then touch $@; else rm -rf $(RIVAL); fi

calibrate: setup-dev ## Fit the expected times to the measurements anew (ten minutes)
	@$(PYTHON) -m pip install --quiet --require-hashes -r requirements/calibrate.txt
	@$(PYTHON) -m calibration

migrate: setup ## Bring the database to the newest schema
	@$(PYTHON) -m app.cli migrate

lock: ## Pin every dependency anew (needs uv and npm)
	@sh requirements/compile.sh
	@npm install --package-lock-only --ignore-scripts

docker: ## Build the container image
	docker build -t tokenroof .

clean: ## Remove what setup, build and tools made; the database stays
	@rm -rf .venv $(RIVAL) node_modules var/assets .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
