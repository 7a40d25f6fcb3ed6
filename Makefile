# Everything from a fresh clone: `make demo`, `make test`, `make docs`. The virtual environment is made on demand.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all lint docs bench clean

demo: .venv/ready
	$(BIN)/discem demo

test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal

test-all: lint
	$(BIN)/python -m pytest -n auto --dist worksteal -m ''

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/docs
	$(BIN)/python -m sphinx -q -W --keep-going -c docs . output/site
	@echo "open output/site/index.html"

bench: .venv/ready
	$(BIN)/python benchmarks/speed.py

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

.venv/docs: .venv/ready
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

clean:
	rm -rf docs/api/generated docs/tutorials .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis output
