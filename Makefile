# Everything happens in .venv, which the first command makes. PYTHON chooses the interpreter (3.10 or newer).
PYTHON ?= python3
BIN := .venv/bin
# Without byte code: Python compiles what is imported, which is a small part of what torch installs. It keeps that, even
# where the environment says otherwise: else each of a test's processes would compile it anew.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip install --quiet --no-compile
.DEFAULT_GOAL := help

.PHONY: help demo test test-integrations test-all bench docs dist lint clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ -/'

# torch comes first and in the tested version, so that no other package chooses one.
.venv/base: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade pip
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	$(PIP) -c constraints.txt -e '.[cpu,train,render]' $$(sh scripts/cupy_extra.sh)
	@touch $@

.venv/dev: .venv/base
	$(PIP) -c constraints.txt -e '.[cpu,dev]'
	@touch $@

demo: .venv/base  ## train agents and leave an animation and a learning curve in out/demo
	$(BIN)/python -m baselines.demo --out out/demo

# TEST_TURN=3 chooses which of the costly tests run, TEST_TURN=all takes all of them; without it the commit chooses.
test: .venv/dev  ## run the tests; of the costly ones those of what changed lately, and by turns one in 96 of the rest
	$(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST)

test-integrations:  ## test the adapters of RLlib, TorchRL, ..., each in an environment of its own in .venvs
	TEST_TURN=$${TEST_TURN:-all} PYTHON=$(PYTHON) scripts/test_integrations.sh

test-all:  ## run everything, as before a release; what each test cost is in out/tests.xml (scripts/test_costs.py)
	$(MAKE) test TEST_TURN=all PYTEST="--junitxml=out/tests.xml"
	$(MAKE) docs
	$(MAKE) test-integrations TEST_TURN=all

bench: .venv/base  ## steps per second of every game
	$(BIN)/gpuzoo bench

# GAMES=turn: films and pages only of games that changed lately or whose turn it is, so that more games cost no more.
# GAMES=Go-v0,SMAX-v0: only of these.
docs: .venv/dev  ## build the documentation into docs/_build/html
	GPUZOO_DOCS=$(GAMES) $(BIN)/python -m sphinx -W --keep-going -j auto -b html docs docs/_build/html

dist: .venv/dev  ## sdist and wheel into dist/, and the wheel tried with each Python on the PATH, where no compiler is
	rm -rf dist
	$(BIN)/hatchling build -d dist
	$(BIN)/python scripts/smoke_wheel.py

lint: .venv/dev  ## format check, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

clean:  ## remove what the other commands made
	rm -rf .venv .venvs out dist docs/_build docs/games docs/_static/games docs/notebooks/*.md
