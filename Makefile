# `make demo` and `make test` need CPython 3.11 or newer, make and git; each sets up all else by itself, under .venvs/.

PYTHON ?= python3
TENSORFLOW ?= tensorflow-cpu==2.21.0

DEV := .venvs/dev
TF := .venvs/tensorflow
SOURCES := $(shell find envlock -name '*.py' -o -name '*.json' -o -name '*.toml') pyproject.toml README.md

.DEFAULT_GOAL := help
.PHONY: help demo test fast lint format generate bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(TF)/.envlock ## lock a real TensorFlow environment, change one thing, be refused
	@$(TF)/bin/python tools/demo.py

test: lint $(TF)/.envlock ## lint, types and every test, with a real TensorFlow
	ENVLOCK_TEST_TENSORFLOW=$(CURDIR)/$(TF)/bin/python $(DEV)/bin/python -m pytest

fast: $(DEV)/.ready ## the tests that need neither TensorFlow nor network
	$(DEV)/bin/python -m pytest -m "not tensorflow"

lint: $(DEV)/.ready ## ruff, mypy, and whether everything generated is up to date
	$(DEV)/bin/ruff check .
	$(DEV)/bin/ruff format --check .
	$(DEV)/bin/mypy
	$(DEV)/bin/python tools/generate.py --check

format: $(DEV)/.ready ## format the code
	$(DEV)/bin/ruff check --fix --quiet . || true
	$(DEV)/bin/ruff format .

generate: $(DEV)/.ready ## rewrite what is made from the tables and the models
	$(DEV)/bin/python tools/generate.py

bench: ## measure against what users would take instead (makes its own environment)
	$(PYTHON) benchmarks/run.py

clean: ## remove everything that make has made
	rm -rf .venvs dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(DEV)/.ready: pyproject.toml tools/venv.sh
	@sh tools/venv.sh "$(PYTHON)" $(DEV) "the tools: pytest, mypy, ruff and others"
	@$(DEV)/bin/python -m pip install --quiet --editable . --group dev
	@touch $@

$(TF)/.ready: tools/venv.sh
	@sh tools/venv.sh "$(PYTHON)" $(TF) "$(TENSORFLOW): some minutes the first time"
	@$(TF)/bin/python -m pip install --quiet "$(TENSORFLOW)"
	@touch $@

$(TF)/.envlock: $(TF)/.ready $(SOURCES)
	@echo "installing this checkout of envlock into $(TF)" >&2
	@$(TF)/bin/python -m pip install --quiet . && $(TF)/bin/python -m pip install --quiet --no-deps --force-reinstall .
	@touch $@
