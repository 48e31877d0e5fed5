# Every target sets up what it needs in .venv; a second call only rebuilds changed sources.
# CYGRAD_DEBUG, CYGRAD_SANITIZE, CYGRAD_MODULES and friends are explained in CONTRIBUTING.md.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

BUILD_REQUIRES := import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")

.PHONY: build train test test-quick test-debug test-address test-clang programs fuzz stress bench bench-compare \
	bench-publish lint format coverage stubtest docs clean
.NOTPARALLEL:
.DELETE_ON_ERROR:
.SECONDARY:

build: $(VENV)/.build-requires
	$(BIN)/python setup.py --quiet build_ext --inplace

train: $(VENV)/.extra-examples build
	$(BIN)/python examples/digits.py $(ARGS)

# All that must hold before a change lands, and what continuous integration runs. ARGS go to the tests, which come last.
test: lint stubtest test-debug test-address $(VENV)/.extra-test build
	$(BIN)/python -m pytest $(ARGS)

# For the inner loop: every area once, in a few minutes. ARGS="-k matmul -m ''" picks from all tests instead.
test-quick: $(VENV)/.extra-test build
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

# The two builds of these parts lie apart, so the package in place stays as it is. DEBUG_COMPILERS="CC=clang CXX=clang++"
# makes the first of them with another compiler, as continuous integration does.
THREAD_TESTS := tests/stress tests/behavior/test_threads*.py tests/behavior/test_hooks_threads.py
test-debug: $(VENV)/.extra-test
	CYGRAD_DEBUG=1 $(DEBUG_COMPILERS) $(BIN)/python -m build_tools.apart -m pytest -q tests/core $(THREAD_TESTS)

test-address: $(VENV)/.extra-test
	CYGRAD_SANITIZE=address $(BIN)/python -m build_tools.apart -m pytest -q -m "not resident" \
		tests/core tests/behavior tests/fuzz

# CLANG=clang-19 CLANGXX=clang++-19 names another version. It needs Clang's OpenMP runtime (libomp).
CLANG   := clang
CLANGXX := clang++
test-clang: $(VENV)/.extra-test
	CC=$(CLANG) CXX=$(CLANGXX) $(BIN)/python -m build_tools.apart -m pytest -q tests/core $(ARGS)

# Threads under load, for minutes; `make test` has it in a short form. TIMES says how many times as long this is.
TIMES := 20
stress: $(VENV)/.extra-test build
	CYGRAD_STRESS=$(TIMES) $(BIN)/python -m pytest tests/stress $(ARGS)

# `make test` runs a few of these.
programs: export CYGRAD_PROGRAMS ?= 2000
programs: $(VENV)/.extra-test build
	$(BIN)/python -m pytest tests/programs $(ARGS)

fuzz: $(VENV)/.extra-test build
	$(BIN)/python -m tests.fuzz $(ARGS)

# With CYGRAD_WITH_TORCH=1, PyTorch is measured as well, and other installed libraries (`pip install -e '.[compare]'`).
bench: $(VENV)/.extra-bench $(if $(filter 1,$(CYGRAD_WITH_TORCH)),$(VENV)/.extra-test) build
	$(BIN)/python -c 'import cygrad; cygrad.show_config()'
	env | grep OPENBLAS_ || true
	$(BIN)/asv machine --yes > /dev/null
	ASV_PYTHONPATH=$(CURDIR) CYGRAD_BENCH_OTHERS=$(filter 1,$(CYGRAD_WITH_TORCH)) $(BIN)/asv run --quick --python=same \
		--set-commit-hash=$$(git rev-parse HEAD) $(ARGS)

# What got slower from BASE to HEAD by more than FACTOR; fails if anything did. Both commits are built in environments of
# their own, which takes minutes. ARGS='--bench Backward' measures these benchmarks alone, FACTOR=1.3 is less strict.
FACTOR := 1.15
bench-compare: $(VENV)/.bench
	$(if $(BASE),,$(error BASE=<commit> says what to compare with))
	$(BIN)/asv machine --yes > /dev/null
	CYGRAD_BENCH_OTHERS= $(BIN)/asv continuous --factor $(FACTOR) --interleave-rounds --split $(ARGS) $(BASE) HEAD

# All results so far as web pages, in .asv/html.
bench-publish: $(VENV)/.bench
	$(BIN)/asv publish $(ARGS)

# Files in the layout of the formatters; the lists only grow.
FORMATTED := setup.py docs examples $(addprefix tests/, conftest.py operator_cases.py reference.py tools.py twins.py) \
	$(addprefix cygrad/, __main__.py _system.py config.py operators.py printing.py numpy signal)
FORMATTED_C := $(addprefix cygrad/_core/, graph/thread_state.h kernels/convolution/winograd.h \
	kernels/reduction/operations.h kernels/sorting/*.h kernels/sorting/selection.cpp memory/thread_variable.h \
	primitives/chain_steps.h primitives/powers.h primitives/vector_error.h)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check $(FORMATTED)
	$(BIN)/clang-format --dry-run --Werror $(FORMATTED_C)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cython-lint cygrad  # it calls pycodestyle
	$(BIN)/codespell

format: $(VENV)/.lint
	$(BIN)/ruff format $(FORMATTED)
	$(BIN)/clang-format -i $(FORMATTED_C)

# Coverage of the Python layers by all tests, branches included; ARGS select tests.
coverage: $(VENV)/.extra-test build
	$(BIN)/python -m pytest --cov --cov-report=html:build/coverage --cov-report=term $(ARGS)

# The type stub against the package that it describes.
stubtest: $(VENV)/.stubtest build
	$(BIN)/python -m mypy.stubtest cygrad --mypy-config-file pyproject.toml --allowlist build_tools/stubtest_allowlist.txt

docs: $(VENV)/.extra-docs build
	$(BIN)/sphinx-build -W --keep-going -j auto -b html $(ARGS) docs build/docs
	$(BIN)/python -m build_tools.check_pages build/docs

# The virtual environment stays: it holds nothing that is built from this tree.
clean:
	rm -rf build docs/generated cygrad.egg-info .pytest_cache .ruff_cache
	rm -f cygrad/_core/build_config.py cygrad/_core/table/rows.marshal cygrad/_core/libcygradopenblas.*
	find cygrad \( -name '*.so' -o -name '*.pyi' \) -delete
	find cygrad tests benchmarks build_tools -name __pycache__ -prune -exec rm -rf {} + 2> /dev/null || true

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.build-requires: pyproject.toml | $(BIN)/python
	$(BIN)/python -c 'import sys; sys.exit("Python >= 3.11 is needed" if sys.version_info < (3, 11) else 0)'
	$(BIN)/python -c '$(BUILD_REQUIRES)' | xargs $(PIP)
	touch $@

# Editable, and without build isolation: what the compiler has done already is kept.
$(VENV)/.extra-%: pyproject.toml $(VENV)/.build-requires
	$(PIP) --no-build-isolation --editable '.[$*]'
	touch $@

# Tools alone, without the package and hence without a compiler.
$(VENV)/.lint $(VENV)/.stubtest $(VENV)/.bench: $(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -c 'import tomllib; \
		print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$*"], sep="\n")' \
		| xargs $(PIP)
	touch $@
