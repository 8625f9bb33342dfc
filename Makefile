# Each target sets up the environment that it needs, in .venv, and reuses it.
#   make verify    judge every claim of the theorems and print the table (needs neither torch nor the test tools)
#   make test      the tests
#   make check     lint, types and tests
#   make proofs    run the proof checker over proofs/ and write what it accepted; CHECK=1: compare with the committed
#   make figures   redraw the figures
#   make docs      regenerate the worked examples and the README's table
#   make bench     measure against the baselines and write benchmarks/RESULTS.md; goes on where it was stopped
#   make mutants   run the mutation tool; what survives and is not listed as equivalent is shown (about an hour on two cores)

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PIP = .venv/bin/python -m pip --disable-pip-version-check --quiet

.PHONY: verify test check lint types docs figures proofs bench mutants clean venv

verify: .venv/core
	.venv/bin/iha-theory verify

test: .venv/test
	.venv/bin/python -m pytest

check: lint types test

lint: .venv/dev
	.venv/bin/ruff check .

types: .venv/dev
	.venv/bin/pyright

proofs: .venv/core
	.venv/bin/python proofs/check.py $(if $(CHECK),--check)

figures: .venv/figures
	.venv/bin/python -m figures --out figures --format svg

docs: .venv/core
	.venv/bin/python docs/generate.py

bench: .venv/test
	.venv/bin/python -m benchmarks

mutants: .venv/dev
	.venv/bin/python -m tests.mutants

clean:
	rm -rf .venv mutants

# Debian ships venv in a package of its own.
venv:
	$(PYTHON) -m venv .venv || { rm -rf .venv; test "$$(id -u)" = 0 && apt-get update -qq && \
	  apt-get install -y -qq --no-install-recommends python3-venv && $(PYTHON) -m venv .venv; } || \
	  { rm -rf .venv; echo "make: $(PYTHON) cannot make a virtual environment; install python3-venv" >&2; exit 1; }

.venv/core: pyproject.toml constraints.txt
	test -x .venv/bin/pip || $(MAKE) --no-print-directory venv
	$(PIP) install -c constraints.txt -e .
	touch $@

.venv/figures: .venv/core
	$(PIP) install -c constraints.txt -e '.[figures]'
	touch $@

.venv/test: .venv/core
	$(PIP) install -c constraints.txt -e '.[test,figures,torch,hugging-face]'
	touch $@

.venv/dev: .venv/test
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@
