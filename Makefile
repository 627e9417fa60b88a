# SPDX-License-Identifier: Apache-2.0
# The two commands of a newcomer are `make demo` and `make test`; both set up .venv by themselves.
# Needs Python >= 3.11, git and make. `make test` also builds a Kubernetes control plane, once per machine.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOADED := $(VENV)/.installed-load

.DEFAULT_GOAL := help
.PHONY: help demo test check browser unit real bench locust load load-full controlplane format docs lock clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

$(STAMP): pyproject.toml requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "muster: $(PYTHON) is older than 3.11; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	@echo "muster: setting up $(VENV) (about a minute the first time)" >&2
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

$(LOADED): $(STAMP) requirements-load.lock
	@echo "muster: adding what the load tests need" >&2
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-load.lock
	@touch $@

demo: $(STAMP)  ## see gangs placed, offline, in seconds
	@$(BIN)/muster demo

test: check browser unit real  ## everything: lint, types, unit tests, tests on the real control plane

check: $(STAMP)  ## format, lint, types, layers, manifests
	$(BIN)/ruff format --check app tests loadtests tools
	$(BIN)/ruff check app tests loadtests tools
	$(BIN)/mypy
	$(BIN)/mypy tests loadtests tools
	$(BIN)/lint-imports
	$(BIN)/yamllint -s deploy examples

unit: $(STAMP)  ## tests without a control plane
	$(BIN)/python -m pytest -m "not real"

browser: $(STAMP)  ## have a browser for the tests of the page: one that is there, or Debian's chromium
	@$(BIN)/python -m tests.browser.install

controlplane: $(STAMP)  ## build etcd, kube-apiserver, kube-scheduler and kwok into the user's cache
	$(BIN)/python -m tests.cluster.binaries

real: controlplane  ## tests on a real kube-apiserver and kube-scheduler
	$(BIN)/python -m pytest -m real

bench: $(STAMP)  ## figures on this machine: planner, verbs and watch events in one process
	$(BIN)/python -m loadtests.inprocess

locust: $(LOADED)  ## load on the HTTP verbs alone: locust against a snapshot of 15,000 nodes
	$(BIN)/python -m loadtests.verbs

load: $(LOADED) controlplane  ## load tests, the short set, and the report: under 10 minutes
	$(BIN)/python -m loadtests short

load-full: $(LOADED) controlplane  ## load tests, all of them, each 5 times, and the report: hours
	$(BIN)/python -m loadtests full

format: $(STAMP)  ## rewrite the code's layout
	$(BIN)/ruff format app tests loadtests tools
	$(BIN)/ruff check --fix app tests loadtests tools

docs: $(STAMP)  ## rewrite the pages that are made from the code: docs/findings
	$(BIN)/python -m tools.findings

LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-emit-index-url \
  --custom-compile-command "make lock" pyproject.toml

lock: $(STAMP)  ## renew the lock files from pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(LOCK) -o requirements.lock
	$(LOCK) --group dev -o requirements-dev.lock
	$(LOCK) --group dev --group load -o requirements-load.lock

clean:  ## remove what make has made here
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
