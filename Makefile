# Two commands do all the set-up: `make demo` runs the main job, `make test` passes the tests.
# Nothing is needed beforehand but Python 3.11 or newer, git and make.

PYTHON ?= python3
VENV ?= .venv
# Tests run in this many processes; 0 runs them in one, as a debugger wants it.
WORKERS ?= 2
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-long lint types imports format benchmarks evidence corpus model card lock clean

help:  ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/run.stamp: requirements/run.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "safetydrift needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --require-hashes -r requirements/run.txt
	$(INSTALL) --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements/dev.txt
	$(INSTALL) --require-hashes -r requirements/dev.txt
	touch $@

demo: $(VENV)/run.stamp  ## Fit on real agent runs, report the findings, replay three of them
	$(BIN)/safetydrift demo --output build/demo

test: $(VENV)/dev.stamp lint types imports  ## Lint, types, import contract, tests, docs examples
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(WORKERS) --dist loadfile -m 'not long' $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

test-long: $(VENV)/dev.stamp  ## The suites that take longer than a coffee; examples drawn afresh
	$(BIN)/python -m pytest -m 'long or hypothesis' --hypothesis-profile fresh $(PYTEST_ARGS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

imports: $(VENV)/dev.stamp
	$(BIN)/lint-imports

format: $(VENV)/dev.stamp  ## Put the code in its usual shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmarks: $(VENV)/dev.stamp  ## Measure; results go to build/benchmarks
	$(BIN)/python benchmarks/run.py --output build/benchmarks

# All six splits (--split models --split suites --split sources --split random besides) take longer.
EVIDENCE := --predictor all --split tasks --split tasks-and-models --resamples 200

evidence: $(VENV)/dev.stamp  ## Compare all predictors on the shipped corpus; write docs/evidence.md and its figures
	mkdir -p build
	$(BIN)/safetydrift evaluate corpus $(EVIDENCE) $(EVIDENCE_ARGS) --evidence docs/evidence.md --output build/evidence.html \
	  > build/evidence.txt

corpus: $(VENV)/run.stamp  ## Derive the shipped corpus again from the raw traces
	$(BIN)/safetydrift corpus build $(TRACES) --output src/safetydrift/corpus

model: $(VENV)/run.stamp  ## Fit the shipped model again from the shipped corpus
	$(BIN)/safetydrift fit corpus --space flow --risk-score --output src/safetydrift/models/default.json

# FIGURES is the JSON of an evaluation: safetydrift evaluate corpus --predictor foresight --split tasks --json > FIGURES
card: $(VENV)/run.stamp  ## Write the card of the shipped model
	$(BIN)/safetydrift card default --name "the shipped model" $(if $(FIGURES),--evaluation $(FIGURES)) --output docs/model-card.md

lock:  ## Compile the locked requirements again (needs uv)
	uv pip compile pyproject.toml requirements/build.in --extra fit --extra report --extra zstd --universal \
	  --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/run.txt
	uv pip compile pyproject.toml requirements/build.in --extra all --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate -c requirements/run.txt -o requirements/dev.txt

clean:
	rm -rf $(VENV) build
