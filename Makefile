# Every target sets up what it needs; a second call is quick.
#   make PYTHON=python3.12 test ARGS="-k uri"
PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
# The demo needs the core alone: it runs in its own light environment unless the full one is there.
DEMO := $(if $(wildcard $(STAMP)),$(VENV),.venv-demo)

.PHONY: help setup demo test check format bench constraints clean
.DEFAULT_GOAL := help

help:
	@echo "make demo     two tables, one transaction, a conflict, time travel: from nothing"
	@echo "make test     the whole test suite"
	@echo "make check    ruff, mypy --strict, layer contracts"
	@echo "make format   let ruff format and fix what it can"
	@echo "make bench    the benchmarks, against their peers"
	@echo "make setup    .venv with every extra and the test tools"
	@echo "make clean    remove environments and caches"

setup: $(STAMP)

$(STAMP): INSTALL := .[all,dev]
.venv-demo/.stamp: INSTALL := .

%/.stamp: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "deltalakedb needs Python 3.11 or newer, and '$(PYTHON)' is not." \
	       "Name one that is: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "setting up $* (the first time takes a few minutes)"
	@$(PYTHON) -m venv $*
	@$*/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '$(INSTALL)'
	@touch $@

demo: $(DEMO)/.stamp
	@$(DEMO)/bin/python -m deltalakedb.demo $(ARGS)

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

check: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(ARGS)

# Renew the pins. Needs uv.
constraints:
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate \
	  --extra all --extra dev --output-file constraints.txt pyproject.toml

clean:
	rm -rf .venv .venv-demo build dist .hypothesis .import_linter_cache .mypy_cache \
	  .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
