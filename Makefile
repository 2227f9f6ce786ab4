# `make help` lists the targets. CONTRIBUTING.md says what they need.

# The first python3 that runs: PATH may contain dead shims of version managers.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1 && { echo $$p; exit; }; done; echo python3)
BIN := .deps/venv/bin
# Every bridge and every worker of the tests would compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE
# Most tests wait for processes: four at a time keep two cores busy. tests/support/schedule.py says which stay together.
PYTEST := $(BIN)/python -m pytest -n 4
STYLUA := .deps/npm/node_modules/.bin/stylua
NVIM := .deps/nvim-0.11/bin/nvim
LUA := $(wildcard lua plugin scripts tests bench)
# Python that is checked for style; programs without an extension are found through pyproject.toml.
PY := $(wildcard bridge scripts tests bench rplugin lua)
PROGRAMS = $(shell grep -lsE '^\#!.*python' $(wildcard scripts/*))

.DEFAULT_GOAL := help
.PHONY: help python runtime setup demo run trace install test test-quick test-agents test-nightly check check-python check-lua check-words check-docs types-lua bench endure fuzz format docs captures screenshots dist clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What the targets that start a script need before anything else.
python:
	@command -v $(PYTHON) >/dev/null || { echo 'Python 3.11 or newer is needed, and there is no python3 on PATH.' >&2; exit 1; }

setup: python ## Fetch what development needs into .deps/ (a second run takes a moment)
	@$(PYTHON) scripts/setup

# What the plugin needs when it runs: the development environment has it, too. Fetched without caches of the user.
RUNTIME = $(if $(wildcard $(BIN)/python),$(BIN),.deps/runtime/bin)
runtime: export PIP_NO_CACHE_DIR := 1
runtime: export UV_NO_CACHE := 1
runtime: python
	@[ -e $(BIN)/python ] || $(PYTHON) scripts/install-env --dir .deps/runtime --lock requirements.lock --imports ''
	@$(RUNTIME)/python scripts/_nvims.py

demo: runtime ## Show an agent at work in a real Neovim
	@$(RUNTIME)/python scripts/demo

run: runtime ## Start Neovim with the plugin from this checkout
	@$(RUNTIME)/python scripts/run

trace: runtime ## Draw the path of a real call through the files
	@$(RUNTIME)/python scripts/trace $(ARGS)

install: python ## Create the plugin's own Python environment, as `:McpTools install` does
	@$(PYTHON) scripts/install-env && echo 'Restart Neovim and run :McpTools welcome'

test: check ## The checks and all tests but the nightly ones
	@$(PYTEST) $(ARGS)

test-quick: setup ## Some of every kind of test, on one Neovim, in about a minute
	@$(PYTEST) --quick $(ARGS)

test-agents: setup ## Only the tests with real agents and a scripted model
	@$(PYTEST) tests/clients $(ARGS)

test-nightly: setup ## Packages, installations from nothing, older conformance, endurance, other plugins, pictures
	@$(BIN)/python -m tests.support.plugins
	@$(PYTEST) -m nightly $(ARGS)
	@$(BIN)/python scripts/screenshots --check
	@$(BIN)/python bench/endurance.py --minutes 10

check: check-python check-lua types-lua check-words check-docs ## Style, types, lint, words, generated documentation

check-python: setup
	@$(BIN)/ruff check --quiet $(PY)
	@$(BIN)/ruff format --quiet --check $(PY) || { $(BIN)/ruff format --check $(PY); exit 1; }
	@$(BIN)/mypy --no-error-summary --scripts-are-modules bridge/mcp_tools_nvim $(wildcard scripts/*.py) $(PROGRAMS)

check-lua: setup
	@$(STYLUA) --check $(LUA)
	@if [ -d .deps/luacheck ]; then $(NVIM) -u NONE -i NONE -n -l scripts/_luacheck.lua .deps/luacheck --no-color -qq $(LUA); \
	elif command -v luacheck >/dev/null; then luacheck --no-color -qq $(LUA); \
	else echo 'check: luacheck is missing: `make setup` says why; or install it yourself' >&2; exit 1; fi

types-lua: setup ## Check the types in the comments of the Lua sources; `ARGS=lua/mcp-tools/util` for a part
	@$(BIN)/python scripts/types_lua.py $(ARGS)

check-words: setup
	@$(BIN)/python scripts/words.py

check-docs: setup
	@if [ -e scripts/gen_doc ]; then $(BIN)/python scripts/gen_doc --check; fi

bench: setup ## Measure; the numbers go to bench/RESULTS.md
	@$(BIN)/python bench/run.py $(ARGS)

endure: setup ## Call over stdio for an hour while editor and bridge are restarted and killed
	@$(BIN)/python bench/endurance.py $(ARGS)

fuzz: setup ## The property tests with many more examples
	@HYPOTHESIS_PROFILE=fuzz $(PYTEST) -m fuzz --timeout 1800 $(ARGS)

format: setup ## Rewrite Python and Lua in the project's style
	@$(BIN)/ruff check --quiet --fix $(PY) || true
	@$(BIN)/ruff format --quiet $(PY)
	@$(STYLUA) $(LUA)

docs: setup ## Regenerate the generated parts of the documentation
	@$(BIN)/python scripts/gen_doc

captures: setup ## Keep what screens show now, with their colours; look at the difference before it is committed
	@$(PYTEST) --update-captures tests/e2e/test_review_captures.py tests/e2e/test_dashboard_terminal.py $(ARGS)

screenshots: setup ## Take the pictures of README and doc/screenshots.md again
	@$(BIN)/python scripts/screenshots

dist: setup ## Build wheel, sdist, rockspec and server.json into dist/, and check them; nothing is uploaded
	@$(BIN)/python scripts/dist.py $(ARGS)

clean: ## Remove everything that was fetched or generated
	@rm -rf .deps .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
