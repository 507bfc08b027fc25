# gameagent's commands: `make` alone lists them. All of them make .venv first where it is missing or outdated.

PYTHON ?= python3.11
JOBS ?= 2
ARGS ?=

BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check

# One quiet thread per process and nothing online, so that tests are repeatable and fast on a busy machine.
QUIET := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 WANDB_MODE=offline

# Programs that pip can't install, and what needs them:
#   chromium    a test opens report.html in a real browser
SYSTEM := chromium
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow check conf setup system bench docs clean

help: ## List these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: $(READY) ## Collect, clone, improve, evaluate, export and film MiniCatch (4 minutes; ARGS="seed=1" overrides)
	@$(BIN)/python run.py +experiment=catch_demo $(ARGS)

test: $(READY) ## Run the tests on JOBS=2 processes (ARGS="tests/envs -k skip" selects)
	@$(QUIET) $(BIN)/python -m pytest -n $(JOBS) --dist loadscope -m "not slow" $(ARGS)

test-slow: $(READY) ## Run the tests that train for minutes
	@$(QUIET) $(BIN)/python -m pytest -n $(JOBS) -m slow $(ARGS)

check: $(READY) ## Lint, format, types, import directions, generated configs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m gameagent.config.render --check

conf: $(READY) ## Write conf/ and the reference pages from the components
	@$(BIN)/python -m gameagent.config.render
	@$(BIN)/python docs/generate.py

setup: $(READY) ## Make .venv (Python 3.11, or PYTHON=...)

system: ## Install with apt the programs that tests use: chromium
	@command -v apt-get >/dev/null || { echo "No apt-get here. Install with your package manager: $(SYSTEM)" >&2; exit 1; }
	$(SUDO) apt-get update -qq
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(SYSTEM)

bench: $(READY) ## Measure speed side by side with peers (keep the machine idle)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script" $(ARGS) || exit 1; done

docs: $(READY) ## Build the site into outputs/site
	@$(BIN)/python docs/generate.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open outputs/site/index.html"

clean: ## Remove caches and builds; .venv and outputs stay
	rm -rf dist build outputs/site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { \
	  echo "$(PYTHON) not found. Install Python 3.11 with its venv module (Debian: apt install python3.11-venv)," >&2; \
	  echo "or name another interpreter, 3.11 or newer: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit(f"gameagent needs Python 3.11 or newer; $(PYTHON) is {v[0]}.{v[1]}")'
	@[ -x $(BIN)/python ] || { echo "Making .venv with $$($(PYTHON) --version)"; $(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }; }
	@echo "Installing gameagent and its libraries into .venv: one to two minutes the first time, about 6 GB"
	@$(PIP) install -qq -e '.[dev]' -c constraints.txt
	@touch $@
