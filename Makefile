# `make demo` and `make test` need CPython 3.11 or newer, make and git; each sets up all else by itself, under .venvs/.

PYTHON ?= python3
TENSORFLOW ?= tensorflow-cpu==2.21.0
CUDA_TENSORFLOWS ?= 2.21.0 2.18.1
OLDER_TENSORFLOWS ?= 2.15.1 2.16.2 2.18.1 2.20.0

DEV := .venvs/dev
TF := .venvs/tensorflow
CUDA := $(CUDA_TENSORFLOWS:%=.venvs/cuda-%)
OLDER := $(OLDER_TENSORFLOWS:%=.venvs/tensorflow-%)
empty :=
CUDA_PYTHONS := $(subst $(empty) $(empty),:,$(CUDA:%=$(CURDIR)/%/bin/python))
OLDER_PYTHONS := $(subst $(empty) $(empty),:,$(OLDER:%=$(CURDIR)/%/bin/python))
FAST := "not (tensorflow or slow or engine)"
WORKERS := $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 2 ))) # many of the fast tests wait: 62 s instead of 71 on 2 cores
SOURCES := $(shell find envlock -name '*.py' -o -name '*.json' -o -name '*.toml') pyproject.toml README.md

unexport PYTHONDONTWRITEBYTECODE # half of collecting the tests is compiling them

.DEFAULT_GOAL := help
.PHONY: help demo test testcuda testolder fast lint format generate base picture bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(TF)/.envlock ## lock a real TensorFlow environment, change one thing, be refused
	@$(TF)/bin/python tools/demo.py

# In CI the CUDA wheels (two environments, 11 GB) and older TensorFlows are part of it; elsewhere these lanes skip loudly,
# and testcuda and testolder run them.
ifdef CI
test: export ENVLOCK_TEST_CUDA_PYTHONS := $(CUDA_PYTHONS)
test: export ENVLOCK_TEST_OLDER_PYTHONS := $(OLDER_PYTHONS)
test: $(CUDA:%=%/.ready) $(OLDER:%=%/.ready)
endif
test: export ENVLOCK_TEST_TENSORFLOW := $(CURDIR)/$(TF)/bin/python
test: lint $(TF)/.envlock ## lint, types and every test, with a real TensorFlow
	$(DEV)/bin/python -m pytest -m $(FAST) -n $(WORKERS)
	$(DEV)/bin/python -m pytest -m "tensorflow or slow or engine" -n auto --maxprocesses 4 --dist loadfile

testcuda: export ENVLOCK_TEST_CUDA_PYTHONS := $(CUDA_PYTHONS)
testcuda: export ENVLOCK_TEST_TENSORFLOW := $(CURDIR)/$(TF)/bin/python
testcuda: $(DEV)/.ready $(TF)/.envlock $(CUDA:%=%/.ready) ## the lane on real CUDA wheels (needs no GPU, but 11 GB)
	$(DEV)/bin/python -m pytest -m cuda_wheels -rP

testolder: export ENVLOCK_TEST_OLDER_PYTHONS := $(OLDER_PYTHONS)
testolder: export ENVLOCK_TEST_TENSORFLOW := $(CURDIR)/$(TF)/bin/python
testolder: $(DEV)/.ready $(TF)/.envlock $(OLDER:%=%/.ready) ## the lane on older TensorFlows (CPython 3.11; 6 GB)
	$(DEV)/bin/python -m pytest -m older_tensorflows -rP

fast: $(DEV)/.ready ## the tests that need neither TensorFlow nor network nor a container engine
	$(DEV)/bin/python -m pytest -m $(FAST) -n $(WORKERS)

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

base: $(DEV)/.ready ## write Dockerfile.base for another release: make base RELEASE=23.08 [TAG=...] [DIGEST=sha256:...]
	@$(DEV)/bin/python tools/team_base.py "$(RELEASE)" $(TAG:%=--tag "%") $(DIGEST:%=--digest "%") > .Dockerfile.base && mv .Dockerfile.base Dockerfile.base \
	|| { rm -f .Dockerfile.base; exit 2; }

picture: $(TF)/.envlock ## draw the README's picture again, from a real run
	@$(TF)/bin/python tools/picture.py

bench: ## measure against what users would take instead (makes its own environment)
	$(PYTHON) benchmarks/run.py

clean: ## remove everything that make has made
	@test ! -d .venvs/engine || $(DEV)/bin/python -m tests.containers.bed down
	rm -rf .venvs dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(DEV)/.ready: pyproject.toml tools/venv.sh
	@sh tools/venv.sh "$(PYTHON)" $(DEV) "the tools: pytest, mypy, ruff and others"
	@$(DEV)/bin/python -m pip install --quiet --editable ".[cli]" --group dev
	@command -v cc >/dev/null || $(DEV)/bin/python -m pip install --quiet ziglang # a C compiler for the NVML stand-in
	@touch $@

$(TF)/.ready: tools/venv.sh
	@sh tools/venv.sh "$(PYTHON)" $(TF) "$(TENSORFLOW): some minutes the first time"
	@$(TF)/bin/python -m pip install --quiet "$(TENSORFLOW)"
	@touch $@

.venvs/cuda-%/.ready: tools/venv.sh
	@sh tools/venv.sh "$(PYTHON)" .venvs/cuda-$* "tensorflow[and-cuda]==$*: some minutes the first time"
	@.venvs/cuda-$*/bin/python -m pip install --quiet --no-cache-dir "tensorflow[and-cuda]==$*"
	@touch $@

.venvs/tensorflow-%/.ready: tools/venv.sh
	@sh tools/venv.sh "$(PYTHON)" .venvs/tensorflow-$* "tensorflow-cpu==$*: some minutes the first time"
	@.venvs/tensorflow-$*/bin/python -m pip install --quiet --no-cache-dir "tensorflow-cpu==$*"
	@touch $@

$(TF)/.envlock: $(TF)/.ready $(SOURCES)
	@echo "installing this checkout of envlock into $(TF)" >&2
	@$(TF)/bin/python -m pip install --quiet ".[cli]" && $(TF)/bin/python -m pip install --quiet --no-deps --force-reinstall .
	@touch $@
