# Two commands on a fresh machine with Python 3.11+, pip and make:  make demo   make test
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# where every core has a process, the threads of NumPy's matrix products would wait for each other, busily
ONE_EACH := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# as many as cores, up to four: Spark is beside them, and one more took 80 CPU seconds and ended no sooner.
# Each takes ten seconds to collect the tests, import what they need and load the kernels.
WORKERS = $(shell $(BIN)/python -c "import os; print(min(4, os.cpu_count() or 1))")

.PHONY: demo test test-here test-spark wheel docs warm collect debian lint bench soak format clean
.DELETE_ON_ERROR:

# What is imported is compiled to bytecode then, once, and not all that is installed. The lock files are complete, so nothing is
# resolved. pip reads the pages of all versions of each package, a minute of CPU for these; uv does not, but knows no pip.conf.
ALONE := --quiet --no-deps
PIP := $(BIN)/python -m pip install --disable-pip-version-check
install = { $(BIN)/uv pip install --python $(BIN)/python $(ALONE) $(1) || $(PIP) --no-compile $(ALONE) $(1); }
demo test soak: export PYTHONDONTWRITEBYTECODE :=
# What comes as sources (PySpark: 400 MB) is made into a wheel to be unpacked at once, so that is not compressed before.
export DIST_EXTRA_CONFIG := $(abspath tools/wheels.cfg)

$(VENV)/core: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)
	$(PIP) --quiet --no-compile uv==0.13.8
	$(call install,-r requirements.lock)
	$(call install,--no-build-isolation -e .)
	touch $@

$(VENV)/dev: $(VENV)/core requirements-dev.lock
	$(call install,-r requirements-dev.lock)
	touch $@

$(VENV)/docs: $(VENV)/dev requirements-docs.lock
	$(call install,-r requirements-docs.lock)
	touch $@

demo: $(VENV)/core          ## near-duplicates among the Python files on this machine
	$(BIN)/likewise demo --out out/demo

test: $(VENV)/core          ## lint, types, layers, all tests, on every core; last, alone, those that read the clock
	$(MAKE) --no-print-directory --jobs=3 $(VENV)/docs warm debian collect
	$(MAKE) --no-print-directory --jobs=3 --output-sync lint test-here test-spark
	$(BIN)/python -m pytest -q -m alone $$(grep -rl --include="test_*.py" "mark\.alone" tests)

test-here:
	$(ONE_EACH) $(BIN)/python -m pytest -q -m "not soak and not alone and not spark" --ignore=tests/spark --numprocesses=$(WORKERS) --dist=worksteal

test-spark:                 # beside the others: Java often waits, and so do they
	$(BIN)/python -m pytest -q -m "spark and not soak" tests/spark

wheel: $(VENV)/core         ## in dist: the sources, a wheel for all platforms, and one for this platform that compiles nothing
	rm -rf dist
	$(BIN)/python -m hatchling build
	HATCH_BUILD_HOOK_ENABLE_CUSTOM=true $(BIN)/python -m hatchling build -t wheel

docs: $(VENV)/docs          ## the site, in out/site: made without the network, every broken link or anchor an error
	$(BIN)/python tools/cli_reference.py
	$(BIN)/python tools/benchmark_page.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "out/site/index.html"

warm: $(VENV)/core          ## compile all kernels, while what only tests need is being installed
	$(BIN)/likewise warmup

collect: warm $(VENV)/docs  # once: workers that import all at the same time would all compile it
	@said=$$($(BIN)/python -m pytest -q --collect-only 2>&1) || { echo "$$said"; exit 1; }

debian:                     ## what tests need besides Python: Java, a browser, a Redis server
	@sh tools/debian.sh

lint: $(VENV)/dev
	$(BIN)/ruff check src tests benchmarks tools
	$(BIN)/ruff format --check src tests benchmarks tools
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev
	$(BIN)/ruff check --fix src tests benchmarks tools
	$(BIN)/ruff format src tests benchmarks tools

bench: $(VENV)/dev          ## side by side with the peers; makes its own corpus and environments (an hour)
	$(BIN)/python benchmarks/text.py

soak: $(VENV)/dev           ## slow truth: hundreds of kills and damages, then all properties on many more examples
	$(BIN)/python -m pytest -q -m soak
	LIKEWISE_EXAMPLES=deep $(ONE_EACH) $(BIN)/python -m pytest -q --timeout=1800 -m "hypothesis and not soak and not alone and not spark" --numprocesses=logical --maxprocesses=4 --dist=worksteal

clean:
	rm -rf out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
