# One folder holds what is installed; every target makes it first if it is not there.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DATA   ?= $(ELUTE_DATA)
# Tests run in as many processes as there are cores; linear algebra with threads of its own would only wait for them.
ONE    := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.PHONY: demo test test-fast fuzz fuzz-engines kills bounds lint format bench reproduce docs architecture clean

demo: $(VENV)/.installed
	$(BIN)/elute demo
	@echo "To run these yourself: source $(BIN)/activate"

test: $(VENV)/.installed-dev
	ELUTE_DATA="$(DATA)" $(ONE) $(BIN)/pytest -n auto --dist loadgroup

# Without the tests that are marked slow: what to run while at work.
test-fast: $(VENV)/.installed-dev
	ELUTE_DATA="$(DATA)" $(ONE) $(BIN)/pytest -n auto --dist loadgroup -m "not slow"

# Damaged files of every kind through every verb that reads them; FUZZ=--seed 7, or --inputs 200, for others.
fuzz: $(VENV)/.installed-dev
	PYTHONPATH=tests $(ONE) $(BIN)/python -m fuzz $(FUZZ)

# Tests of kernels and of what they serve, with numba's bounds checks on; compiled into a cache of their own.
bounds: $(VENV)/.installed-dev
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/bounds-checked ELUTE_DATA="$(DATA)" $(ONE) $(BIN)/pytest -n auto \
	  --dist loadgroup tests/kernels tests/identify tests/estimate tests/repair tests/engines/test_duckdb.py \
	  tests/engines/test_damaged_counts.py

# The same answer on every engine, on random logs: embedded, with --memory, from counts, in Postgres, and in Spark. Hours.
FUZZ_LOGS       ?= 1000
FUZZ_SPARK_LOGS ?= 100
fuzz-engines: $(VENV)/.installed-dev
	ELUTE_FUZZ_LOGS=$(FUZZ_LOGS) ELUTE_FUZZ_SPARK_LOGS=$(FUZZ_SPARK_LOGS) $(ONE) $(BIN)/pytest -n auto --dist loadgroup \
	  tests/engines/test_engines_agree.py tests/engines/test_postgres.py -k random_logs_alike

# An append to a folder of parts, killed at so many random moments: nothing is lost, nothing doubled.
KILLS ?= 200
kills: $(VENV)/.installed-dev
	ELUTE_KILLS=$(KILLS) $(ONE) $(BIN)/pytest -n 0 tests/engines/test_parts_writers.py -k killed

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# BENCH_ROWS=100000000 for the size the goals are stated at.
bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.check
	$(BIN)/python -m benchmarks.structures
	$(BIN)/python -m benchmarks.cores
	$(BIN)/python -m benchmarks.hot
	$(BIN)/python -m benchmarks.door
	$(BIN)/python -m benchmarks.daily
	$(BIN)/python -m benchmarks.merge
	$(BIN)/python -m benchmarks.budget
	$(BIN)/python -m benchmarks.simulate
	$(BIN)/python -m benchmarks.letor
	$(BIN)/python -m benchmarks.fit
	$(BIN)/python -m benchmarks.clicks
	$(BIN)/python -m benchmarks.cmip
	$(BIN)/python -m benchmarks.judge
	$(BIN)/python -m benchmarks.value
	$(BIN)/python -m benchmarks.spark
	$(BIN)/python -m benchmarks.spark --cluster --fit
	$(BIN)/python -m benchmarks.neural --torch

# Every published table and figure, run again; the pages in docs/reproductions are what this writes.
reproduce: $(VENV)/.installed-dev
	for name in $$($(BIN)/elute reproduce | cut -d' ' -f1); do \
	  ELUTE_DATA="$(DATA)" $(BIN)/elute reproduce $$name --out docs/reproductions || exit 1; done

# The docs site, into site/; a warning is an error. The variable silences an advertisement of another builder.
docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The picture of the rooms in docs/architecture.md, from the imports as they are now.
architecture: $(VENV)/.installed-dev
	$(BIN)/python docs/rooms.py

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[report]"
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps ir-measures
	touch $(VENV)/.installed $@

# What runs leave behind; .venv and the benchmarks' logs stay.
clean:
	rm -rf demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
