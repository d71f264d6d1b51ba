# Everything happens in .venv, which the first command makes. PYTHON chooses the interpreter (3.10 or newer).
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help

.PHONY: help demo test test-integrations bench docs lint clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ -/'

# torch comes first and in the tested version, so that no other package chooses one.
.venv/base: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[cpu,train,render]' $$(sh scripts/cupy_extra.sh)
	@touch $@

.venv/dev: .venv/base
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[cpu,dev]'
	@touch $@

demo: .venv/base  ## train agents and leave an animation and a learning curve in out/demo
	$(BIN)/python baselines/demo.py --out out/demo

test: .venv/dev  ## run all tests
	$(BIN)/python -m pytest -n auto --dist worksteal

test-integrations:  ## test the adapters of RLlib, TorchRL, ..., each in an environment of its own in .venvs
	PYTHON=$(PYTHON) scripts/test_integrations.sh

bench: .venv/base  ## steps per second of every game
	$(BIN)/gpuzoo bench

docs: .venv/dev  ## build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

lint: .venv/dev  ## format check, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

clean:  ## remove what the other commands made
	rm -rf .venv .venvs out docs/_build docs/games docs/_static/games
