# Every target sets up what it needs inside the checkout; only Python >= 3.11 with pip is assumed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
# Three workers on two cores: many tests wait for clusters, browsers and processes.
WORKERS ?= 3
TESTS ?=  # which tests; all by default
BIN := .venv/bin
STAMP := .venv/.stamp
DEMO_STAMP := .venv/.stamp-demo
# Work stealing keeps the tests of a file on one worker, so that clusters and other fixtures start once.
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal
# The output of each target in one piece; make of macOS does not have this option.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
# On a busy machine a cluster, a process or a browser may be too slow for a test beside other tests. So tests that fail
# are run once more, alone, and listed as PASSED or FAILED; a test that fails twice fails the target.
define run_tests
@$(PYTEST) $(1) || { code=$$?; test $$code -eq 1 || exit $$code; \
	printf '\nThe tests that failed are run once more, alone. "PASSED" below: failed at first, passed alone.\n'; \
	$(BIN)/pytest -n 0 -rap --last-failed --last-failed-no-failures none --maxfail 10 $(1); }
endef

# One thread per process: the arrays are small, and the test workers share the cores.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
# Python keeps what it compiled, also where the environment says otherwise: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast browser faults mutations lint types layers bench docs dist format clean

help:
	@echo "make demo       tune an SVM live on real data"
	@echo "make test       lint, types, layers, documentation and all tests"
	@echo "make test-fast  the tests without the slow ones"
	@echo "make faults     bad objectives and executors, kills, Ctrl-C, damaged files, hostile names, full disks: one table"
	@echo "make mutations  switch off parts of the method, one by one, and see that a test notices"
	@echo "make docs       build the documentation into site/"
	@echo "make dist       build and check the wheel and the source distribution, in dist/"
	@echo "make bench      seconds per ask(), and how often stated intervals hold, as tables"
	@echo "make format     rewrite the sources as the formatter wants them"

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "fabolas needs Python 3.11 or later; run: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	"$(PYTHON)" -m venv .venv

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -e ".[dev]"
	@touch $(STAMP) $(DEMO_STAMP)

# The demo needs only scikit-learn beside the core.
$(DEMO_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -e ".[sklearn]"
	@touch $(DEMO_STAMP)

demo: $(DEMO_STAMP)
	$(BIN)/python -m fabolas.demo

# Types and documentation take about as long as each other, so they use two cores together; then the tests do.
test: export BUILT_SITE := $(CURDIR)/site
test: $(STAMP) browser
	@$(MAKE) --no-print-directory -j 2 $(SYNC) types docs lint layers
	$(call run_tests,$(TESTS))

test-fast: $(STAMP)
	$(call run_tests,-m "not slow" $(TESTS))

# The tests of the report and of the live page need Chromium. Where it cannot be installed, they are skipped; with CI=true
# they fail.
browser:
	@if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then \
		{ apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } >/dev/null 2>&1 \
		|| echo "Chromium could not be installed: the tests that need it are skipped"; fi

faults: $(STAMP)
	$(BIN)/python -m tests.faults

mutations: $(STAMP)
	$(BIN)/python -m tests.mutations

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks.ask
	$(BIN)/python -m experiments.calibration --seeds 5

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --no-isolation .
	$(BIN)/twine check --strict dist/*

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build site
