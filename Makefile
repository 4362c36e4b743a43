# Every verb sets up what it needs; `make` alone lists them. Building and testing share one optimised build in .build.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MILLRACE := .build/release/millrace
SWIFT_FLAGS := -c release -Xswiftc -enable-testing
DURATION ?=
QUERY ?=
EVENTS ?= 2000000
WORKERS ?= 1
N ?=
SEED ?=
RUNS ?= $(if $(PEERS),3,1)
PEERS ?=
T ?=

.PHONY: help setup build test unit integration crash sim demo bench bless tidy format fuzz docs clean

help: ## List the verbs
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: ## Install missing Debian packages, saying which
	@Scripts/setup

build: setup ## Build the optimised program: .build/release/millrace
	@swift build $(SWIFT_FLAGS)

test: ## Set up, build, then run unit and integration tests, times printed apart
	@Scripts/test

unit: setup ## Run unit tests only; T=MillSQLTests picks some
	@swift build $(SWIFT_FLAGS) --build-tests
	@swift test $(SWIFT_FLAGS) --skip-build $(if $(T),--filter $(T))

integration: build ## Run the tests with real clients only
	@Scripts/test --integration-only

crash: build ## Kill the server under load N=200 times, then compare every view with a recomputation; SEED=1
	@Scripts/crash --kills $(or $(N),200) $(if $(SEED),--seed $(SEED))

sim: setup ## Run the simulation for N=2000 seeds from SEED=1; with SEED alone that one
	@swift build $(SWIFT_FLAGS) --build-tests
	@MILLRACE_SEED=$(or $(SEED),1) MILLRACE_RUNS=$(or $(N),$(if $(SEED),1,2000)) swift test $(SWIFT_FLAGS) --skip-build --filter everyLifeGoesOn

demo: build ## Play the balloon game, everything embedded; DURATION=30 ends it
	@$(MILLRACE) demo $(if $(DURATION),--duration $(DURATION))

bench: build ## Measure Nexmark; QUERY=q0,q7 EVENTS=2000000 WORKERS=1 RUNS=1; PEERS=1 beside Flink, DuckDB, chDB
	@$(if $(PEERS),Scripts/bench-peers,$(MILLRACE) bench nexmark) $(if $(QUERY),--query $(QUERY)) --events $(EVENTS) --workers $(WORKERS) --runs $(RUNS)

bless: setup ## Rewrite golden files from the programs they stand for; review the diff
	@python="$$(Scripts/python-env bless jinja2==3.1.6 pyyaml==6.0.3)" && "$$python" Scripts/bless-templates
	@BLESS=1 swift test $(SWIFT_FLAGS) --filter PlanGolden

tidy: ## Print the figures of the house; fail on dead files, leftovers and wrong imports
	@Scripts/tidy

format: ## Format all Swift files
	@swift format format --in-place --parallel --recursive Sources Tests Package.swift

fuzz: build ## 100,000 hostile statements, then random bytes at the listeners; SEED=1
	@Scripts/test-hostile --connections 40000 $(if $(SEED),--seed $(SEED))
	@MILLRACE_FUZZ=100000 $(if $(SEED),MILLRACE_FUZZ_SEED=$(SEED)) swift test $(SWIFT_FLAGS) --filter StatementFuzzTests

docs: ## Check that documents point at files that exist
	@Scripts/tidy --documents-only

clean: ## Remove what was built
	@rm -rf .build
