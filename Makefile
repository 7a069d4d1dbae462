# Every target is one line of intent; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
FUZZ_VENV := .venv-fuzz
PROGRAMS_VENV := .venv-programs
BIN := $(VENV)/bin
NODES ?= 2
MACHINE ?= hgx-h100
ALLOCATOR ?= controller
CONTROLLERS ?= 2
# How the driver runs on the local cluster: processes, pods (by the chart), none.
DRIVER ?= processes
SEEDS ?= 20000
# Processes that run the tests of seconds.
WORKERS ?= 2
# Of the soak: claims in all, and a second (0: as fast as it goes).
CYCLES ?= 36000
RATE ?= 10
# Of `make bench`: some of the suites (benchmarks/suites.py); empty: all of them.
SUITES ?=
# Who `make blackbox` tries: one of tests/blackbox/subjects, or a file; groups of cases side by side, which mostly wait.
SUBJECT ?= ration
GROUPS_AT_ONCE ?= 4
# Of chaos: how many faults, and what draws them.
FAULTS ?= 500
# Of the campaign beside kube-scheduler: how many rounds; SEED draws them.
ROUNDS ?= 200
SEED ?= 20261122
# `make fuzz`: seconds for each target, and the least number of examples of each property.
SECONDS ?= 60
EXAMPLES ?= 300
# Tests that want NVIDIA's own programs, and skip where they were not fetched.
REAL_PROGRAMS := tests/contract/mps tests/component/mps/test_real_programs.py tests/contract/test_nvml_symbols.py
# A line of Kubernetes (1.37, 1.36); empty: the default of hack/cluster/versions.toml.
K8S ?=
export K8S
FEATURE_GATES ?=
export FEATURE_GATES
# Of kind. DAEMON=1: a Docker daemon of our own runs for the time of the cluster.
DAEMON ?=
KIND_FLAGS := $(if $(DAEMON),--daemon)
# What runs on kind; the last one takes the driver away.
ON_KIND := $(addprefix tests/e2e/test_,admission.py whole_gpus.py as_installed.py from_release.py chart.py)
STAMP := $(VENV)/.synced
# Commands below it run in the network of the cluster that RATION_CLUSTER names; none: the machine's.
IN_NETWORK := $(BIN)/python -m hack.cluster run --
# The tests of a file stay together: they share what is slow to make. Slow ones are begun first.
SIDE_BY_SIDE := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Tests that want a cluster of their own each: most want the driver as pods.
OWN_CLUSTER := $(wildcard $(addprefix tests/e2e/test_,chart.py demo.py rights.py rights_used.py foreign_ownership.py several_drivers.py nvidia_driver.py controller_only.py neighbours.py gpu_nodes.py nvidia_names.py upgrade.py upgrade_from.py as_installed.py from_release.py webhook.py shapes.py queues.py kueue.py karpenter.py prometheus.py page.py chaos.py))

# Python compiles a module once, and not at every start of a process; never into the checkout.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ration/bytecode
export NO_MKDOCS_2_WARNING = 1

.PHONY: help setup fmt lint type arch proto proto-check docs docs-check chart-snapshot secrets audit scan check unit component oracle \
        real-programs differential filters fuzz soak chaos agreement blackbox fresh gates index-programs \
        arm64 e2e-smoke e2e-kind kind-up kind-down test e2e bench bench-check demo demo-down cluster-up cluster-down lock release

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
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11 --extra fuzz -c requirements/runtime.lock pyproject.toml -o requirements/fuzz.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11 requirements/programs.in -o requirements/programs.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11 requirements/release.in -o requirements/release.lock

fmt: setup ## Format the code.
	$(BIN)/ruff format . && $(BIN)/ruff check --fix-only --quiet .

lint: setup ## Check format and lint.
	$(BIN)/ruff format --check . && $(BIN)/ruff check .
	$(BIN)/hadolint deploy/images/Dockerfile

type: setup ## Check types, strictly.
	$(BIN)/mypy

arch: setup ## Check the arrows between rooms and the size budgets.
	$(BIN)/lint-imports --no-cache && $(BIN)/python -m pytest -q -p no:randomly tests/house

# The stubs below $(1); those of gRPC only where a file has a service.
generate = $(BIN)/python -m grpc_tools.protoc -I proto --python_out=$(1) --pyi_out=$(1) $$(cd proto && ls driver/pb/*.proto) && \
	$(BIN)/python -m grpc_tools.protoc -I proto --grpc_python_out=$(1) $$(cd proto && grep -l ^service driver/pb/*.proto)

proto: setup ## Generate driver/pb from proto/.
	$(call generate,.)

proto-check: setup ## Fail when driver/pb is not what proto/ generates.
	@work=$$(mktemp -d) && mkdir -p $$work/driver/pb && \
	$(call generate,$$work) && \
	diff -r $$work/driver/pb driver/pb -x __pycache__ -x __init__.py && rm -r $$work

docs: setup ## Generate docs/reference and the chart's values; build the site into site/.
	$(BIN)/python -m hack.docs && $(BIN)/mkdocs build --quiet --strict

docs-check: setup ## Fail when a generated page or file is not what the code generates.
	$(BIN)/python -m hack.docs --check && site=$$(mktemp -d) && $(BIN)/mkdocs build --quiet --strict --site-dir $$site && rm -r $$site

chart-snapshot: setup ## Renew what tests compare the chart's default render with.
	$(BIN)/python -m hack.chart snapshot

secrets: setup ## Look for keys and tokens in all that the history ever added.
	$(BIN)/python -m hack.leaks

audit: setup ## Ask PyPI what is known to be wrong with what is pinned.
	$(BIN)/python -m hack.audit

scan: setup ## Make the image and scan it: its files, what PyPI knows of its packages, what Debian has newer.
	@work=$$(mktemp -d) && $(BIN)/python -m hack.image $$work/image.tar && $(BIN)/python -m hack.scan $$work/image.tar; code=$$?; rm -r $$work; exit $$code

check: lint type arch secrets proto-check docs-check bench-check ## Everything that needs no test run.

unit: setup ## Unit and property tests.
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) tests/unit tests/properties tests/fuzz

component: setup ## Real sockets and processes, no cluster.
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) tests/component tests/contract -m "not gpu"

oracle: setup ## Against kube-scheduler's own allocator; the first time it is built with Go.
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) --timeout 600 tests/oracle

real-programs: setup ## NVIDIA's own programs, fetched as packages, on a libc that is not the image's; as root.
	$(BIN)/python -m hack.nvidia
	$(BIN)/python -m pytest -q -p no:randomly --timeout 300 $(REAL_PROGRAMS)

differential: setup ## Our allocator beside kube-scheduler's, on SEEDS random clusters.
	$(BIN)/python -m tests.oracle.differential --seeds $(SEEDS)

filters: setup ## Our node filters and preferences beside kube-scheduler's own plugins, on SEEDS random clusters of two pods.
	$(BIN)/python -m tests.oracle.filters --seeds $(SEEDS)

soak: setup ## One plugin, CYCLES claims at RATE a second while things break; 20,000 pods for the controllers; 2,500 real pods: two and a half hours.
	$(BIN)/python -m tests.soak --cycles $(CYCLES) --rate $(RATE)
	$(BIN)/python -m tests.soak.controllers
	$(BIN)/python -m tests.soak.pods

chaos: setup ## A real cluster, broken FAULTS times under load, as SEED draws it: 35 to 70 minutes.
	$(BIN)/python -m tests.chaos --faults $(FAULTS) --seed $(SEED)

fresh: setup ## Both commands of README.md from an empty home and empty caches, cold and warm: an hour or more, as root.
	$(BIN)/python -m tests.fresh

gates: setup $(FUZZ_VENV)/.synced ## All that must be green before production: hours, as root.
	$(BIN)/python -m tests.gates

agreement: setup ## ROUNDS of plain Deployments by SEED beside kube-scheduler, with faults, delays and load.
	$(BIN)/python -m tests.agreement --rounds $(ROUNDS) --seed $(SEED) --busy --delay --faults

blackbox: setup ## A DRA driver (SUBJECT) as a real kubelet (K8S) and a proxy that breaks calls see it.
	$(BIN)/python -m tests.blackbox --subject $(SUBJECT) --nodes $(GROUPS_AT_ONCE) --keep tests/blackbox/results.json

fuzz: setup $(FUZZ_VENV)/.synced ## Decoders for SECONDS each, led by coverage; then every property, EXAMPLES each.
	$(FUZZ_VENV)/bin/python -m tests.fuzz --seconds $(SECONDS)
	RATION_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q -p no:randomly tests/properties

$(FUZZ_VENV)/.synced: requirements/fuzz.lock $(STAMP)
	test -x $(FUZZ_VENV)/bin/python || $(PYTHON) -m venv --without-pip $(FUZZ_VENV)
	VIRTUAL_ENV=$(FUZZ_VENV) $(BIN)/uv pip sync --quiet --require-hashes requirements/fuzz.lock
	touch $@

index-programs: setup $(PROGRAMS_VENV)/.synced ## Programs of others that read NVML, on every simulated machine.
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) tests/contract/test_index_programs.py

$(PROGRAMS_VENV)/.synced: requirements/programs.lock $(STAMP)
	test -x $(PROGRAMS_VENV)/bin/python || $(PYTHON) -m venv --without-pip $(PROGRAMS_VENV)
	VIRTUAL_ENV=$(PROGRAMS_VENV) $(BIN)/uv pip sync --quiet --require-hashes requirements/programs.lock
	touch $@

arm64: setup ## The image for arm64, built and tried on an emulator: ten minutes.
	$(BIN)/python -m hack.emulated

e2e-smoke: setup ## The main path on the local cluster (K8S).
	$(IN_NETWORK) $(BIN)/python -m pytest -q -p no:randomly --timeout 300 tests/e2e -m smoke

e2e: setup release ## Every scenario on the local cluster (K8S).
	$(IN_NETWORK) $(BIN)/python -m pytest -q -p no:randomly --timeout 400 tests/e2e $(addprefix --ignore ,$(OWN_CLUSTER))
	for one in $(OWN_CLUSTER); do $(IN_NETWORK) $(BIN)/python -m pytest -q -p no:randomly $$one || exit 1; done

e2e-kind: setup release ## The scenarios of kind, on a cluster of its own (DAEMON=1, NODE: as kind-up).
	$(BIN)/python -m hack.kind up $(KIND_FLAGS)
	GROUND=kind $(BIN)/python -m pytest -v -p no:randomly --timeout 900 --durations 0 --durations-min 1 $(ON_KIND) || { $(BIN)/python -m hack.kind down; exit 1; }
	$(BIN)/python -m hack.kind down

test: check ## What CI runs: check, then every test that takes seconds, then the main path.
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) tests/unit tests/properties tests/fuzz tests/component tests/contract
	$(MAKE) --no-print-directory oracle
	RATION_CLUSTER=tests $(MAKE) --no-print-directory e2e-smoke

bench: setup ## Measure all (SUITES: some); write page and pictures; fail where a figure fell since the last commit.
	$(BIN)/python -m benchmarks.suites $(SUITES)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks gate

bench-check: setup ## Fail when benchmarks/README.md or a picture of curves is not what the results make.
	$(BIN)/python -m benchmarks --check

release: setup ## Image, chart, install.yaml, SBOM and checksums, into dist/.
	$(BIN)/python -m hack.release

cluster-up: setup ## Real Kubernetes with the driver, here (NODES, MACHINE, ALLOCATOR, DRIVER, K8S, FEATURE_GATES).
	$(BIN)/python -m hack.cluster up --nodes $(NODES) --machine $(MACHINE) --allocator $(ALLOCATOR) --controllers $(CONTROLLERS) --driver $(DRIVER)

cluster-down: setup ## End the cluster and all it made.
	$(BIN)/python -m hack.cluster down

kind-up: setup ## kind with the driver and simulated GPUs (CLUSTER, MACHINE, NODE; DAEMON=1: with a Docker daemon of our own).
	$(BIN)/python -m hack.kind up $(KIND_FLAGS)

kind-down: setup ## End the cluster of kind, and a Docker daemon of our own.
	$(BIN)/python -m hack.kind down

demo: DRIVER = pods
demo: cluster-up ## Boot two nodes of eight simulated H100, install the chart, run examples/quickstart.
	$(BIN)/python -m hack.demo

demo-down: cluster-down ## End the demo.
