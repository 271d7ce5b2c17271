# 'make demo', 'make demo-debian' and 'make test' set everything up on first use; later runs start at once.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TESTS ?= tests
PYTEST_OPTIONS ?=
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: setup demo demo-debian explore test test-browser lint format docs check-release clean

setup: $(READY)

demo: $(READY)
	@$(BIN)/python examples/demo.py

# Real packages from APT's lists; LISTS=FOLDER if they are not where APT keeps them.
demo-debian: $(READY)
	@$(BIN)/python examples/demo_debian.py $(LISTS)

# The explorer on the demo's run, or on RUN=FOLDER.
RUN ?= demo/heterformer
explore: $(READY)
	@test -d $(RUN) || { echo "error: $(RUN) is not there; run 'make demo' first, or give RUN=FOLDER"; exit 1; }
	@$(BIN)/heterformer serve $(RUN)

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadscope $(PYTEST_OPTIONS) $(TESTS)

# The explorer from end to end in Chromium, which is installed where APT may do that.
test-browser: $(READY)
	@command -v chromium chromium-browser google-chrome > /dev/null || tools/install_chromium.sh
	$(INSTALL) --no-build-isolation -e '.[browser]'
	HETERFORMER_BROWSER_TESTS=1 $(BIN)/python -m pytest $(PYTEST_OPTIONS) tests/browser

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The documentation site in site/: built without warnings, every link of it checked.
docs: $(READY)
	$(INSTALL) --no-build-isolation -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tools/check_links.py site

# What a maintainer checks before a tag; TAG=v0.2.0 also checks that the tag fits.
check-release: $(READY)
	$(INSTALL) --no-build-isolation -e '.[release]'
	PATH="$(BIN):$$PATH" $(BIN)/python tools/check_release.py $(TAG)

# torch goes first and pinned: with it in place nothing else can pull in another build.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than Python 3.11; run: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(INSTALL) torch setuptools
	$(INSTALL) --no-build-isolation -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv demo build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
