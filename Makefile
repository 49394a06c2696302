# Everything runs from .venv, which the targets build and refresh themselves: on a fresh machine
# Python >= 3.11 and make are enough. Choose another interpreter with `make PYTHON=/path/to/python ...`.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
ARGS ?=
# Two workers: the tests start databases and receivers of their own, and small machines have two cores.
PYTEST_WORKERS ?= 2
# `make test` has four: for much of its time a test waits, for a process to start or a retry to come due.
TEST_WORKERS ?= 4

# With this set, each process of a test run would compile all its imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: dist help install install-sqs install-dev install-infra demo demo-sqs up localstack synth templates aws-proof test test-postgres test-long faults soak screenshots hostile-cases mutants check format bench bench-all lock clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed-local ## install hooksaga for one machine in .venv

install-sqs: $(VENV)/.installed-sqs ## also install the packages for SQS mode on one machine

install-dev: $(VENV)/.installed-dev ## also install the packages for tests and checks

install-infra: $(VENV)/.installed-infra ## also install the packages for AWS deployments

demo: install ## deliver sample events to healthy and failing receivers, show the results
	$(BIN)/hooksaga demo $(ARGS)

up: install ## run hooksaga on this machine, e.g. make up ARGS="--port 9000"
	$(BIN)/hooksaga up $(ARGS)

# The two longest first, one for each worker; the others fill up.
faults: install-dev ## run the full fault suite and write docs/guarantees.md
	HOOKSAGA_FAULTS=all $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile --no-loadscope-reorder \
	    -p tests.faults.guarantees_page -m "faults or guarantee or guarantees" --guarantees-page docs/guarantees.md \
	    $(ARGS) tests/database/test_model.py tests/sqs/test_crash_points.py tests

soak: install-dev ## run half an hour of load with failing receivers and kills, e.g. make soak ARGS="--minutes 5 --rate 50"
	$(BIN)/python -m tests.faults.soak $(ARGS)

bench: install ## measure deliveries per second, e.g. make bench ARGS="--events 50000"
	$(BIN)/hooksaga bench $(ARGS)

bench-all: install ## run all benchmarks of docs/performance.md in 40 minutes, e.g. make bench-all ARGS="--only ingest depth"
	$(BIN)/python -m bench.all $(ARGS)

localstack: install-sqs ## run the demo on LocalStack (in Docker, or at LOCALSTACK_HOST), else on ministack
	@if [ -n "$$LOCALSTACK_HOST" ]; then \
	    echo "Using the endpoint LOCALSTACK_HOST=$$LOCALSTACK_HOST."; \
	elif docker info >/dev/null 2>&1; then \
	    echo "Starting LocalStack in Docker."; \
	    docker compose -f shared/hooksaga/local/sqs/compose.yaml up --detach --wait || exit 1; \
	    export LOCALSTACK_HOST=127.0.0.1:4566; \
	else \
	    echo "Docker is not available: using ministack instead of LocalStack."; \
	fi; \
	$(BIN)/hooksaga demo --sqs $(ARGS)

demo-sqs: install-sqs ## run the demo with real queues and the Lambda functions, without Docker
	$(BIN)/hooksaga demo --sqs $(ARGS)

synth: install-infra ## synthesize and check the CloudFormation templates, without an AWS account
	$(BIN)/python -m infra.cdk_cli synth --quiet $(ARGS)

templates: install-infra ## write plain CloudFormation templates with their assets, e.g. make templates ARGS="--env prod"
	$(BIN)/python -m infra.templates $(ARGS)

aws-proof: install-infra ## deploy to your AWS account, disturb, check and destroy, e.g. make aws-proof ARGS="--yes"
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m infra.proof $(ARGS)

dist: install-dev ## build the wheels and sdists of both packages in dist/, check them, install and run them
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m build --no-isolation --outdir dist cdk
	$(BIN)/twine check --strict dist/*
	HOOKSAGA_DIST=dist $(BIN)/python -m pytest -n 0 tests/wheel $(ARGS)

# tests/scheduling.py puts the slow files first; the many quick ones fill up.
test: install-dev ## run the tests, e.g. make test ARGS="tests/unit -k backoff"
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

# Debian installs a server in this folder; another place: make test-postgres POSTGRES=/path/to/bin
VERSION ?= 15
POSTGRES ?= /usr/lib/postgresql/$(VERSION)/bin

test-postgres: install-dev ## run the database tests on another PostgreSQL, e.g. make test-postgres VERSION=16
	HOOKSAGA_TEST_POSTGRES=$(POSTGRES) $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder \
	    tests/database $(ARGS)

test-long: install-dev ## run the long tests
	HOOKSAGA_FAULTS=all $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile -m long $(ARGS)

screenshots: install-dev ## retake the screenshots of docs/console.md; with LOOKS=folder also every page in every look
	HOOKSAGA_SCREENSHOTS=docs/console HOOKSAGA_LOOKS=$(LOOKS) HOOKSAGA_FAULTS=all $(BIN)/python -m pytest -n 0 tests/console/test_browser.py \
	    tests/console/test_looks.py tests/console/test_portal_browser.py tests/console/test_embed_example.py $(ARGS)

hostile-cases: install-dev ## run the tests of hostile receivers, DNS servers and clients, and write docs/hostile-cases.md
	HOOKSAGA_FAULTS=all $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile -p tests.hostile_page -m hostile \
	    --hostile-page docs/hostile-cases.md tests/egress tests/delivery tests/api tests/e2e $(ARGS)

# mutmut takes modules by their own names only below a folder src.
mutants: $(VENV)/.installed-mutants ## run mutation tests of the core and list the surviving mutants
	@mkdir -p mutants && ln -sfn shared src
	PYTHONPATH=$(CURDIR)/mutants/src:$(CURDIR)/mutants $(BIN)/mutmut run --max-children $(PYTEST_WORKERS) $(ARGS); \
	    status=$$?; $(BIN)/mutmut results; rm -f src; exit $$status

check: install-dev ## check formatting, lint, types and import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: install-dev ## format the code and fix lint errors
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: install-dev ## update the versions in constraints.txt
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --upgrade \
	    --no-annotate --no-header --no-emit-index-url --no-emit-find-links --quiet -o constraints.txt

clean: ## remove .venv and caches; keep the data in .hooksaga
	rm -rf $(VENV) build dist cdk.out templates .pytest_cache .ruff_cache .hypothesis .import_linter_cache mutants
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# With the stamps below a second run does nothing, and a changed list of packages is installed again.

$(VENV)/.created:
	@python=; \
	for candidate in $(PYTHON) python3.13 python3.12 python3.11 python3 python; do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	        python=$$candidate; break; \
	    fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "hooksaga needs Python 3.11 or newer; found only: $$(python3 --version 2>&1 || echo none)." >&2; \
	    echo "Install one, or name one: make PYTHON=/path/to/python3.12 ..." >&2; \
	    exit 1; \
	fi; \
	echo "Creating $(VENV) with $$("$$python" --version)"; \
	"$$python" -m venv --clear $(VENV) || { \
	    echo "Could not create a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; \
	    exit 1; \
	}
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv \
	    || echo "uv is not available; using pip, which is slower."
	@touch $@

# $(call install,[EXTRAS]). uv is faster; if it cannot reach the packages, pip may, with its own settings.
define install
	@{ [ -x $(BIN)/uv ] && $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.$(1)'; } \
	    || $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.$(1)'
	@touch $@
endef

$(VENV)/.installed-local: $(VENV)/.created pyproject.toml constraints.txt
	$(call install)

$(VENV)/.installed-sqs: $(VENV)/.created pyproject.toml constraints.txt
	$(call install,[sqs])
	@touch $(VENV)/.installed-local

$(VENV)/.installed-dev: $(VENV)/.created pyproject.toml constraints.txt
	$(call install,[dev])
	@touch $(VENV)/.installed-local $(VENV)/.installed-sqs $(VENV)/.installed-infra

$(VENV)/.installed-infra: $(VENV)/.created pyproject.toml constraints.txt
	$(call install,[infra])
	@touch $(VENV)/.installed-local

$(VENV)/.installed-mutants: $(VENV)/.created pyproject.toml constraints.txt
	$(call install,[mutants])
	@touch $(VENV)/.installed-local $(VENV)/.installed-sqs $(VENV)/.installed-infra $(VENV)/.installed-dev
