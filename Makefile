# make demo   set up and compare the models on a bundled data set; the report and the model go to build/demo
# make test   set up and run lint, types, import contracts and tests
# make check  lint, types and import contracts only
# make test-engines  set up and run the tests that need Spark (450 MB) or PyTorch's CPU build (200 MB); gets Java by apt-get if it may
# make test-lowest  a quick part of the tests with the oldest versions that pyproject.toml allows, in .venv-lowest
# make conformance  scikit-learn's own tests with our classes in its place; writes docs/conformance.md (SAMPLE=1: the quick ones only)
# make cluster-demo  fit on a Dask cluster of two processes, and kill one of them on the way
# make docs   build the site into build/site: every page, the gallery run, a page for every public name; warnings are errors
# make explorer  rebuild the page of the explorer from explorer/ (needs Node 20 or newer); its files are kept in the repository
# make bench  compare with the peers; make bench WORKLOAD=B7 for one workload, ATLAS=1 for 200 problems drawn by that seed
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-engines test-lowest check conformance cluster-demo docs explorer bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/separatrix compare examples/data/penguins.csv --target sex --out build/demo

test: check
	$(BIN)/pytest -n 2 --dist worksteal

test-engines: $(VENV)/.engines
	$(BIN)/pytest tests/test_spark.py tests/test_device*.py

# What cannot pass there is named in tools/lowest_plugin.py, test by test, with the reason.
LOWEST := least_squares rda naive_bayes perceptron nearest_centroid discriminants logistic svm wheel

test-lowest: .venv-lowest/.lowest
	PYTHONPATH=tools .venv-lowest/bin/pytest -p lowest_plugin $(LOWEST:%=tests/test_%.py)

check: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --strict benchmarks
	$(BIN)/lint-imports
	$(BIN)/python tools/check_house.py

conformance: $(VENV)/.dev
	$(BIN)/python tools/conformance.py $(if $(SAMPLE),--sample)

cluster-demo: $(VENV)/.dev
	$(BIN)/python examples/cluster_demo.py

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs build/site
	$(BIN)/python tools/site_links.py build/site

explorer:
	cd explorer && npm install --no-save --no-audit --no-fund && npm run build

bench: $(VENV)/.bench
	$(BIN)/python -m $(if $(ATLAS),benchmarks.atlas --seed $(ATLAS),benchmarks.run $(if $(WORKLOAD),--workload $(WORKLOAD)))

clean:
	rm -rf $(VENV) .venv-lowest .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist src/*.egg-info

$(VENV)/bin/pip:
	$(PYTHON) -c 'import sys; sys.exit("separatrix needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

# One stamp a set of packages: set up once, and again when pyproject.toml changes.
$(VENV)/.demo: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ $(VENV)/.demo

# The CPU build by its own name: the plain one would bring gigabytes of CUDA packages. A PyTorch that is there is left alone.
CPU_TORCH := "torch==2.13.0+cpu; sys_platform == 'linux'" "torch==2.13.0; sys_platform != 'linux'"

$(VENV)/.engines: pyproject.toml | $(VENV)/bin/pip
	tools/system_package.sh java default-jre-headless "the tests of Spark will be skipped"
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,spark]'
	$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check $(CPU_TORCH) \
	  || echo "The package index has no CPU build of PyTorch: the tests of devices will be skipped."
	touch $@ $(VENV)/.dev $(VENV)/.demo

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@ $(VENV)/.demo

.venv-lowest/.lowest: pyproject.toml tools/lowest_versions.py
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check -e . $$($(PYTHON) tools/lowest_versions.py)
	touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@ $(VENV)/.demo
