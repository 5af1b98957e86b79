# Needs make and a Python, 3.11 or newer. Everything else goes into .venv.
# Choose another Python with PYTHON=..., pass arguments to pytest with PYTEST_ARGS=... and a marker with MARK=...

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
PYTEST_ARGS ?=
MARK ?=
# Many tests wait for processes: four files at a time, also on two cores. Long ones first (tests/conftest.py).
WORKERS ?= 4
# What is repeated in this process on every database: what writes and locks.
ON_EACH := $(addprefix tests/,engine store queries verbs models db dispatch celery contrib declare management) \
	tests/test_api.py tests/test_signals.py
XDIST := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
CODE := $(wildcard src tests examples benchmarks docs/reference/build.py)
LOCK := --quiet --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help .venv test lint typing demo demo-admin bench reference screenshots oracle simulate chaos soak test-matrix \
	test-releases test-clients test-upstream lock clean

help:
	@echo 'make demo         the main job on SQLite, no server needed'
	@echo 'make demo-admin   the same with the admin to look at'
	@echo 'make test         the tests, on every database and broker found here; ONEBEAT_TEST_ALL=1: those of minutes too'
	@echo 'make lint         ruff, mypy, import contracts, the figures of tests/house.py'
	@echo 'make typing       pyright on what users see (make lint has mypy on it)'
	@echo 'make bench        the benchmark; SHORT=1 for a few minutes of it, SIZES=10000 for at most so many tasks'
	@echo 'make screenshots  the pictures in docs/screenshots, of the admin as it is now'
	@echo 'make reference    docs/reference, written again from the docstrings'
	@echo 'make oracle       the long comparison of recurrence with a brute-force scan'
	@echo 'make simulate     the engine in a simulated world: SEEDS=1000 runs, or one of them with SEED=n'
	@echo 'make chaos        real faults on real processes, a table; CHAOS_ARGS="--only killed --schedulers 3"'
	@echo 'make soak         200 tasks every second under random kills, for MINUTES=60'
	@echo 'make test-matrix  the tests on other versions; MATRIX="5.2:5.5 6.1:5.7" chooses Django:Celery'
	@echo 'make test-releases  there and back with every release of django-celery-beat on every database'
	@echo 'make test-clients   packages around django-celery-beat, switched to onebeat and back; CLIENTS="unfold drf" for some'
	@echo 'make test-upstream  the unit tests of django-celery-beat itself, with onebeat in its place'
	@echo 'make lock         write requirements/*.txt again; LOCK_ARGS=--upgrade for newer versions'
	@echo 'make clean        remove what these made'

.venv: .venv/installed

.venv/installed: requirements/dev.txt requirements/mariadb.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo 'No Python 3.11 or newer was found: name one with PYTHON=...'; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -r requirements/dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@$(BIN)/pip install --quiet -r requirements/mariadb.txt >.venv/mariadb.log 2>&1 || \
		echo 'mysqlclient could not be built, so MariaDB is left out of the tests: see .venv/mariadb.log'
	@touch $@

# The last run is the full one, so that its closing line is pytest's last word.
test: .venv/installed
	@$(BIN)/python -m tests.services sh -c 'failed=0; \
	for db in $$ONEBEAT_TEST_DATABASES; do \
		test $$db = sqlite && continue; \
		echo "onebeat tests: those in this process (marked django_db), on $$db"; \
		ONEBEAT_TEST_DB=$$db $(BIN)/python -m pytest $(XDIST) $(ON_EACH) -m "django_db $(if $(MARK),and ($(MARK)))" $(PYTEST_ARGS) || \
			test $$? = 5 || failed=1; \
	done; \
	echo "onebeat tests: all of them; those in this process on sqlite"; \
	$(BIN)/python -m pytest $(XDIST) -m "$(MARK)" $(PYTEST_ARGS) || failed=1; \
	exit $$failed'

lint: .venv/installed
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.house

typing: .venv/installed
	@test -x .venv-typing/bin/pyright || { $(PYTHON) -m venv .venv-typing && .venv-typing/bin/pip install --quiet 'pyright[nodejs]'; }
	.venv-typing/bin/pyright -p tests/typing --pythonpath $(BIN)/python

demo: .venv/installed
	$(BIN)/python examples/demo/run.py

demo-admin: .venv/installed
	$(BIN)/python examples/demo/admin.py

bench: .venv/installed
	@$(BIN)/pip install --quiet croniter
	$(BIN)/python -m benchmarks.run $(if $(SHORT),--short) $(if $(SIZES),--sizes $(SIZES)) $(BENCH_ARGS)

screenshots: .venv/installed
	$(BIN)/python -m pytest --timeout 600 tests/admin/shots.py

reference: .venv/installed
	$(BIN)/python docs/reference/build.py

oracle: .venv/installed
	ONEBEAT_ORACLE_ROUNDS=40000 $(BIN)/python -m pytest --timeout 3600 tests/core/recurrence/test_oracle.py

simulate: .venv/installed
	$(BIN)/python -m tests.proof.simulation $(if $(SEED),$(SEED),1 $(or $(SEEDS),1000))

chaos: .venv/installed
	$(BIN)/python -W ignore -m tests.proof.chaos $(CHAOS_ARGS)

soak: .venv/installed
	$(BIN)/python -W ignore -m tests.proof.soak --minutes $(or $(MINUTES),60) $(SOAK_ARGS)

test-matrix: .venv/installed
	@MARK='$(MARK)' PYTEST_ARGS='$(XDIST) $(PYTEST_ARGS)' $(BIN)/python -m tests.services .ci/matrix

test-releases: .venv/installed
	@ONEBEAT_TEST_RELEASES=all $(BIN)/python -m tests.services $(BIN)/python -m pytest tests/takeover/releases $(PYTEST_ARGS)

test-clients: .venv/installed
	@$(BIN)/python -m tests.services $(BIN)/python -m tests.clients $(CLIENTS)

test-upstream: .venv/installed
	@$(BIN)/python -m tests.services $(BIN)/python -m tests.upstream

# With the oldest Python we support: what is locked for it installs on the newer ones too.
lock:
	python3.11 -m venv .venv-lock
	.venv-lock/bin/pip install --quiet pip-tools
	.venv-lock/bin/pip-compile $(LOCK) $(LOCK_ARGS) --extra solar --extra prometheus -o requirements/dev.txt pyproject.toml requirements/dev.in
	.venv-lock/bin/pip-compile $(LOCK) $(LOCK_ARGS) -o requirements/mariadb.txt requirements/mariadb.in

clean:
	rm -rf .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .demo
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
