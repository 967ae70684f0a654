# Every target sets up what it needs inside the checkout; only Python >= 3.11 with pip is assumed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
WORKERS ?= 2
BIN := .venv/bin
STAMP := .venv/.stamp

# One thread per process: the arrays are small, and the test workers share the cores.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast faults lint types layers bench format clean

help:
	@echo "make demo       tune an SVM live on real data"
	@echo "make test       lint, types, layers and all tests"
	@echo "make test-fast  the tests without the slow ones"
	@echo "make faults     kill a hundred runs at random moments and resume them"
	@echo "make bench      seconds per ask(), as a table"
	@echo "make format     rewrite the sources as the formatter wants them"

$(STAMP): pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "fabolas needs Python 3.11 or later; run: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -e ".[dev]"
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/python -m fabolas.demo

test: lint types layers
	$(BIN)/pytest -n $(WORKERS)

test-fast: $(STAMP)
	$(BIN)/pytest -n $(WORKERS) -m "not slow"

faults: $(STAMP)
	$(BIN)/python -m tests.faults.kill --runs 100

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks.ask

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
