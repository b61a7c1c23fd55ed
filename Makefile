# Every target bootstraps .venv by itself; Python >= 3.11, Java >= 17, make and git are all it needs.
PYTHON ?= python3
SOAK ?=
LANES ?=
BENCH ?=
WORKERS ?= 3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MEMBERS := core $(wildcard plugins/*)
EDITABLE := -e 'core[spark,testing]' $(patsubst %,-e %,$(wildcard plugins/*))

.DEFAULT_GOAL := help
.PHONY: help setup check-python check-java demo test lint bench soak docs build clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "streamcore needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Choose another: make PYTHON=python3.12 ..." >&2; exit 1; }

check-java:
	@java=$${JAVA_HOME:+$$JAVA_HOME/bin/}java; version=$$("$$java" -version 2>&1 | sed -nE 's/.* version "(1\.)?([0-9]+).*/\2/p'); \
	if [ -z "$$version" ]; then echo "streamcore needs Java 17 or newer for Spark, and found no '$$java'. Install a JDK, put it on PATH, or correct JAVA_HOME." >&2; exit 1; \
	elif [ "$$version" -lt 17 ]; then echo "streamcore needs Java 17 or newer for Spark; '$$java' is version $$version." >&2; exit 1; fi

setup: $(STAMP) ## create .venv with every package and tool, pinned by constraints.txt

$(STAMP): pyproject.toml constraints.txt $(wildcard core/pyproject.toml plugins/*/pyproject.toml) | check-python check-java
	@echo "installing into $(VENV): a minute or two, and once only"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraint constraints.txt --group dev $(EDITABLE)
	@$(BIN)/python -m compileall -q $(addsuffix /src,$(MEMBERS)) # Spark starts many a Python, and some machines keep no bytecode
	@touch $@

demo: $(STAMP) ## page views per region: real broker, live result, checked counts
	@$(BIN)/python examples/demo/demo.py

test: $(STAMP) ## everything that must hold, on real services; WORKERS=6 for more than two cores
	@$(BIN)/python -m pytest -m 'not soak' -n $(WORKERS) --dist loadfile --no-loadscope-reorder --hypothesis-seed=0

lint: $(STAMP) ## ruff, mypy --strict, dependency consistency
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy $(wildcard core/src) $(wildcard plugins/*/src)
	@$(BIN)/uv pip check --python $(BIN)/python

bench: $(STAMP) ## side by side with the peers, ratios printed, docs/benchmarks.md written; BENCH='--only latency' for some
	@status=0; $(BIN)/python -m benchmarks --json docs/benchmarks.json $(BENCH) || status=$$?; \
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --group bench && \
	$(BIN)/python -m benchmarks.report docs/benchmarks.json && exit $$status

soak: $(STAMP) ## full-scale fault and load runs, docs/reliability.md written; LANES=2 at a time, STREAMCORE_SOAK_SCALE=0.1 for a tenth
	@STREAMCORE_RELIABILITY_REPORT=docs/reliability.md $(BIN)/python -m pytest -m soak -p no:cacheprovider \
	  -p streamcore.testing.ledger.report $(if $(LANES),-n $(LANES) --dist worksteal -p streamcore.testing.ledger.lanes) $(SOAK)

docs: $(STAMP) ## regenerate option tables in READMEs and docs
	@$(BIN)/python -m streamcore.docs

build: $(STAMP) ## wheels and sdists of every package, into dist/
	@for member in $(MEMBERS); do $(BIN)/uv build --quiet --python $(BIN)/python --out-dir dist $$member || exit 1; done; ls dist

clean: ## remove what make created
	@rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache
