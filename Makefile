# Every target is one line of intent; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODES ?= 2
MACHINE ?= hgx-h100
ALLOCATOR ?= controller
STAMP := $(VENV)/.synced

export PYTHONDONTWRITEBYTECODE ?= 1

.PHONY: help setup fmt lint type arch proto proto-check docs docs-check budgets check unit \
        properties component contract oracle e2e-smoke test e2e bench demo demo-down \
        cluster-up cluster-down lock

help: ## Show every target.
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

setup: $(STAMP) ## Make .venv from the hashed requirements.
$(STAMP): requirements/bootstrap.lock requirements/dev.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip sync --quiet --require-hashes requirements/dev.lock requirements/bootstrap.lock
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

lock: $(STAMP) ## Resolve requirements/*.lock again from pyproject.toml.
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11 requirements/bootstrap.in -o requirements/bootstrap.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11 pyproject.toml -o requirements/runtime.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11 --extra dev -c requirements/runtime.lock pyproject.toml -o requirements/dev.lock

fmt: setup ## Format the code.
	$(BIN)/ruff format . && $(BIN)/ruff check --fix-only --quiet .

lint: setup ## Check format and lint.
	$(BIN)/ruff format --check . && $(BIN)/ruff check .

type: setup ## Check types, strictly.
	$(BIN)/mypy

arch: setup ## Check the arrows between rooms and the size budgets.
	$(BIN)/lint-imports --no-cache && $(BIN)/python -m pytest -q -p no:randomly tests/house

proto: setup ## Generate driver/pb from proto/.
	$(BIN)/python -m grpc_tools.protoc -I proto --python_out=. --pyi_out=. --grpc_python_out=. $$(cd proto && ls driver/pb/*.proto)

check: lint type arch ## Everything that needs no test run.

unit: setup ## Unit tests.
	$(BIN)/python -m pytest -q tests/unit

cluster-up: setup ## Bring up real Kubernetes on this machine (NODES, MACHINE, ALLOCATOR).
	$(BIN)/python -m hack.cluster up --nodes $(NODES) --machine $(MACHINE) --allocator $(ALLOCATOR)

cluster-down: setup ## End it, a crashed one too; nothing of it stays.
	$(BIN)/python -m hack.cluster down
