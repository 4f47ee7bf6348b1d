# The project's commands. Each sets up what it needs; nothing has to be installed first but
# Python 3.11 with venv and pip.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# Tests start many processes: where this is set, each of them compiles all of our sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo quick test test-pipeline test-local-cluster test-cluster test-live test-cut test-wheel test-wheel-short check bench report docs wheel release lock clean

install: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: install
	$(BIN)/semcast demo

# The inner loop: everything pure, and the shorter simulations. No live groups, no Spark; under 90 seconds on two cores.
PURE := core lab testing obsolescence wire protocols specs history models patterns net docs families
SITUATIONS := $(addprefix tests/sim/test_sim_,cluster.py networks.py situations.py ring_situations.py vsync_situations.py)

quick: install
	$(BIN)/python -m pytest -q -n 2 $(addprefix tests/,$(PURE)) $(SITUATIONS) src --ignore src/semcast/pipeline

# Real sockets and processes, two files beside each other: tests wait more than they work, and files have groups of their
# own. What fails there once has found something: nothing is tried again.
BESIDE := -n 2 --dist loadfile
SOCKETS := tests/group tests/engine tests/dashboard/test_dashboard_command.py tests/release tests/server/test_server_local.py tests/cli/test_cli_live.py tests/cli/test_cli_vsync.py
LIVE := $(SOCKETS) tests/live/test_live_programs.py tests/live/test_live_processes.py tests/live/test_live_relay.py

test: install
	$(BIN)/python -m pytest -n 2 --ignore tests/pipeline --ignore tests/cluster --ignore tests/live $(addprefix --ignore ,$(SOCKETS))
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/pipeline
	$(BIN)/python -m pytest $(BESIDE) $(LIVE)

# The Spark jobs alone, in two processes: each has one session.
test-pipeline: install
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/pipeline

# Spark with executors in processes of their own, on this machine: the short form for CI.
test-local-cluster: install
	$(BIN)/python -m pytest tests/cluster/test_cluster_local.py

# A standalone Spark cluster of processes whose workers have disks of their own (root), come late and die. Ten minutes.
test-cluster: install
	$(BIN)/python -m pytest tests/cluster/test_cluster_jobs.py
	$(BIN)/python -m pytest tests/cluster/test_cluster_commands.py tests/cluster/test_cluster_local.py tests/cluster/test_cluster_connect.py
	$(BIN)/python -m pytest tests/cluster/test_cluster_streams.py

# Groups on networks that are cut: they need root, iproute2 and nftables, and are skipped without. Each has namespaces of
# its own.
test-cut: install
	$(BIN)/python -m pytest $(BESIDE) tests/live/test_live_namespaces.py tests/live/test_live_vsync_namespaces.py

# All groups of real processes: also virtual synchrony, fuzzing, cut networks (some need root), chaos and the demo. Ten minutes.
test-live: install
	$(BIN)/python -m pytest tests/live

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: install
	$(BIN)/python -m benchmarks --write

# The documentation as a site, in out/site: a link that leads nowhere fails. The pictures are drawn from the code.
docs: install
	$(BIN)/python -m tools.pictures --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# What would be published, in dist/: built from what the source archive holds, then installed into empty environments
# and used. Nothing is uploaded.
release: install
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	SEMCAST_TEST_DIST=$(CURDIR)/dist $(BIN)/python -m pytest -q tests/release
	@ls -l dist

# A wheel for this machine's kind whose protocols are compiled, in dist/; without a C compiler or mypyc, the pure one.
wheel: install
	$(BIN)/python -m tools.wheel

# The same, installed into an environment of its own. There: the tests of what is compiled. Two minutes, for CI.
COMPILED := wheel core obsolescence wire protocols
IN_WHEEL := build/wheel/environment/bin/python

test-wheel-short: install
	rm -rf build/wheel
	$(BIN)/python -m tools.wheel --outdir build/wheel
	$(BIN)/python -m tools.wheel.environment build/wheel/*.whl build/wheel/environment
	SEMCAST_TEST_COMPILED=1 $(IN_WHEEL) -m pytest -q -n 2 $(addprefix tests/,$(COMPILED))

# Then what derives from it, mutants and a short swarm, and live groups. Six minutes more.
test-wheel: test-wheel-short
	$(IN_WHEEL) -m pytest -q -n 2 tests/sim/test_sim_swarm.py -k "ring or vsync or s-rm or s-srm"
	$(IN_WHEEL) -m pytest -q $(BESIDE) tests/net tests/group

# Every sweep that has not run yet (some 50 minutes of one core), then the page.
report: install
	$(BIN)/semcast report --run

# The lock names versions and hashes, never an index.
lock:
	$(BIN)/pip-compile --quiet --all-extras --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header \
	  --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
