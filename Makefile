# Everything a checkout needs. Bare `make` lists the targets.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WHAT_IF ?= --bandwidth 15Gbps --gpus 6
TRAIN ?=
VALIDATE ?=
FUZZ ?=
PACKAGE ?=
FAULTS ?=
REV ?= HEAD
ONLY ?=

# The engine as machine code; without it the reference engine answers, so a failure here is none of the installation.
COMPILE := $(BIN)/gcnsim doctor --compile > /dev/null || true

# Tests start hundreds of commands: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

# What was installed, for which dependencies; make compares their dates.
CORE := $(VENV)/.core-installed
RUNTIME := $(VENV)/.runtime-installed
DEV := $(VENV)/.dev-installed
SITE := $(VENV)/.docs-installed
RELEASE := $(VENV)/.release-installed
RESOLVE := build/resolve
# Chosen by hand: its builds differ by device, and the resolved one may carry the mark of this machine's.
TORCH := torch==2.13.0

.PHONY: help what-if train test check slow fuzz faults bench bench-compare validate docs examples dist package licences constraints clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

what-if: $(CORE) ## Install into .venv and answer the example question (WHAT_IF="..." for other options)
	@$(BIN)/gcnsim what-if $(WHAT_IF)

train: $(RUNTIME) ## Install torch too and really train: handwritten digits on 2 workers (TRAIN="..." for other options)
	@$(BIN)/python -m runtime.train $(TRAIN)

test: check ## Run the checks, then all tests but the slow ones (GCNSIM_DATA=folder adds those on real graphs)
	$(BIN)/python -m pytest -n 2 --dist loadscope --durations=15 --junit-xml=build/tests.xml

check: $(DEV) ## Lint, format, types, and which package imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

slow: $(DEV) ## Run the slow tests
	$(BIN)/python -m pytest -m slow

fuzz: $(DEV) ## Mutated files into every reader, 100,000 each, hours (FUZZ="--seconds 60 --reader METIS" for less)
	$(BIN)/python -m tests.fuzz $(FUZZ)

faults: $(DEV) ## Kill, stop and cut off what trains and writes, 20 minutes (FAULTS="-k SIGSTOP" for less); needs root, ip and tc
	$(BIN)/python -m pytest -m slow -n 0 tests/faults $(FAULTS)

bench: $(DEV) ## Measure speed and memory; tables here, JSON in out/
	@missed=0; for name in engine periods what_if graph generate parts recorder runtime; do \
	    $(BIN)/python -m benchmarks.bench_$$name || missed=1; done; exit $$missed

bench-compare: $(DEV) ## What-if, recommend and sweep of this tree and of REV in turn, as ratios (ONLY=what-if for one of them)
	$(BIN)/python -m benchmarks.bench_before $(REV) $(ONLY)

validate: $(DEV) ## Emulate, measure, predict and compare, some 20 minutes (VALIDATE=--quick: 2; --systems: other methods; --kernels: other kernels); needs root, ip and tc
	$(BIN)/python -m studies.validate $(VALIDATE)

docs: $(SITE) ## Build the documents as a site in out/site, warnings are errors, every link followed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

examples: $(DEV) ## Write what the commands print today into README and docs/
	$(BIN)/python -m tests.docs.examples

dist: $(RELEASE) ## Build wheel and source archive into dist/, and check what they say of themselves
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

package: $(DEV) dist ## Install the wheel into clean environments, by hash, and run README's commands there (PACKAGE=options)
	$(BIN)/python -m studies.package $(PACKAGE)

licences: $(DEV) ## List every installed package with version and licence
	@$(BIN)/python -m studies.licences

constraints: ## Resolve the newest versions of all dependencies into constraints.txt, and their hashes
	rm -rf $(RESOLVE)
	$(PYTHON) -m venv $(RESOLVE)
	$(RESOLVE)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,dask,ray,recommend,docs,release]' $(TORCH)
	echo '# Versions that the tests pass with, of all dependencies; written by `make constraints`.' > $(RESOLVE)/found
	$(RESOLVE)/bin/python -m pip freeze --all --exclude-editable --exclude pip | sed 's/^\(torch==[^+]*\)+.*/\1/' >> $(RESOLVE)/found
	mv $(RESOLVE)/found constraints.txt
	$(RESOLVE)/bin/python -m pip install --quiet --disable-pip-version-check uv
	UV=$(RESOLVE)/bin/uv $(RESOLVE)/bin/python -m studies.hashes
	rm -rf $(RESOLVE)

clean: ## Remove caches, build files and benchmark output (.venv stays)
	rm -rf build dist out *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find gcnsim runtime tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +

$(CORE): pyproject.toml constraints.txt
	@$(venv)
	$(INSTALL) --editable .
	@$(COMPILE)
	@touch $@

$(RUNTIME): pyproject.toml constraints.txt
	@$(venv)
	$(INSTALL) --editable '.[runtime]'
	@$(COMPILE)
	@touch $(CORE) $@

$(DEV): pyproject.toml constraints.txt
	@$(venv)
	$(INSTALL) --editable '.[dev]'
	@$(COMPILE)
	@touch $(CORE) $(RUNTIME) $@

$(SITE): pyproject.toml constraints.txt
	@$(venv)
	$(INSTALL) --editable '.[docs]'
	@touch $@

$(RELEASE): pyproject.toml constraints.txt
	@$(venv)
	$(INSTALL) --editable '.[release]'
	@touch $@

# Debian splits venv from Python; without this its message drowns in the traceback of ensurepip.
define venv
if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
    echo "gcnsim needs Python 3.11 or later; $(PYTHON) is not. Try: make PYTHON=/path/to/python3.11" >&2; exit 1; fi; \
if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
    echo "$(PYTHON) cannot create virtual environments. On Debian: apt install python3-venv" >&2; exit 1; fi; \
test -x $(BIN)/pip || { echo "creating $(VENV) with $(PYTHON)"; $(PYTHON) -m venv $(VENV); }
endef
