# The project's commands. Each sets up what it needs; nothing has to be installed first but
# Python 3.11 with venv and pip.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: install demo test test-pipeline test-live check bench report lock clean

install: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: install
	$(BIN)/semcast demo

# Real sockets and processes on a shared machine may be late: what fails there is tried once more, alone.
SOCKETS := tests/group tests/cli/test_cli_live.py tests/cli/test_cli_vsync.py
LIVE := $(SOCKETS) tests/live/test_live_programs.py tests/live/test_live_processes.py tests/live/test_live_relay.py

test: install
	$(BIN)/python -m pytest -n 2 --ignore tests/pipeline --ignore tests/live $(addprefix --ignore ,$(SOCKETS))
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/pipeline
	$(BIN)/python -m pytest $(LIVE) || $(BIN)/python -m pytest $(LIVE) --last-failed --last-failed-no-failures none

# The Spark jobs alone, in two processes: each has one session.
test-pipeline: install
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/pipeline

# All groups of real processes: also virtual synchrony, fuzzing, cut networks (some need root) and the demo. Eight minutes.
test-live: install
	$(BIN)/python -m pytest tests/live

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: install
	$(BIN)/python -m benchmarks --write

# Every sweep that has not run yet (some 10 minutes of one core), then the page.
report: install
	$(BIN)/semcast report --run

# The lock names versions and hashes, never an index.
lock:
	$(BIN)/pip-compile --quiet --all-extras --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header \
	  --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
