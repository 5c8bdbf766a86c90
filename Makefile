# The front door. Every target sets up what it needs in .venv; nothing else is touched, but for `browser`.
PYTHON ?= python3
VENV := .venv
MINUTES ?= 15
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
PYTEST := $(PY) -m pytest -n auto --maxprocesses 8
export PYTHONDONTWRITEBYTECODE :=  # or every process of the tests would compile every file of Python again

.PHONY: demo test browser quick processors lint attack bench tables docs clean

demo: $(VENV)/.core  ## the main job on a data set that scikit-learn carries
	$(PY) examples/demo.py

test: $(VENV)/.test lint browser  ## every test, also the slow ones
	$(PYTEST)

APT := env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=5 \
	-o Acquire::https::Timeout=5 -o APT::Update::Error-Mode=any -o DPkg::Lock::Timeout=0

browser:  ## Chromium, which looks at the report, where apt may install it; without it its tests are skipped
	@if command -v chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { timeout 60 $(APT) update && \
		$(APT) install -y --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1; then :; \
	else echo "No Chromium with chromedriver: the report is not tried in a browser (Debian: chromium, chromium-driver)."; fi

quick: $(VENV)/.test  ## the quick tests only
	$(PYTEST) -m "not slow"

processors: $(VENV)/.test  ## every test, our code compiled for AVX2 alone and for SSE2 alone, OpenBLAS as with AVX2
	for cpu in haswell generic; do \
		NUMBA_CPU_NAME=$$cpu NUMBA_CPU_FEATURES= OPENBLAS_CORETYPE=Haswell $(PYTEST) || exit 1; done

lint: $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

attack: $(VENV)/.test  ## kills, forged files, hostile arrays, Ctrl-C, dead workers, for MINUTES
	$(PY) -m attack --minutes $(MINUTES)

bench: $(VENV)/.bench  ## ours beside the fastest peers: ratios of time and memory
	$(PY) -m benchmarks
	$(PY) -m benchmarks --processor avx2

tables: $(VENV)/.core  ## the tables of models in README.md and docs/, from the classes
	$(PY) -m docs.tables

docs: $(VENV)/.core  ## the documentation as HTML in docs/_build; a warning is an error
	$(PIP) --editable ".[docs]"
	$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml
	$(PIP) --editable .
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(PIP) --editable ".[test]"
	touch $@ $(VENV)/.core

$(VENV)/.bench: $(VENV)/.test pyproject.toml
	$(PIP) --editable ".[test,bench]"
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache dist
