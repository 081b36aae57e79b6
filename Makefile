# hoicli's targets. A clean clone needs python3 (3.10 to 3.14), make and the package index; nothing else.
#
#   make demo    set up what it needs, then the main job on fixtures/: eval, compare, match | diagnose, with a plot; a page of it
#                all; corrupt and robust; and foreign files
#   make test    set up all, then run the tests but for those marked `long`, on every processor: three minutes on two
#   make test-all  every test, the hostile campaign, kill tests and all pages of docs/ among them: before a release
#   make test-lowest PYTHON=python3.10   the tests of `make test` with the lowest version of everything that pyproject.toml asks for
#   make lint    ruff, mypy, and the order of the rooms (import-linter)
#   make docs    run every command that README.md and docs/ show, and write down what it prints now
#   make site    site-output/: README.md, docs/ and the reference of `import hoicli` as pages, with search, without a server
#   make pictures  draw docs/pictures/ anew; needs Chromium or Chrome
#   make bench   one page of times beside floors and peers (bench-output/bench.md), six minutes;
#                PREDICTIONS=cdn.json TRUTH=instances_test2015.json for a real dump, PEERS=DIR for released evaluators
#   make lock    what pyproject.toml asks for, pinned, anew: fixtures/scale/requirements.lock for the image, with hashes, and
#                tests/requirements.lock for development, on every Python (PIP_CONSTRAINT=tests/requirements.lock make test)
#   make dist    dist/: the wheel and the source, as they are released, and a check of their metadata
#   make image   the image of fixtures/scale/Dockerfile, and a look that it runs as a strict cluster would; needs Docker
#   make mutants MODULE=hoicli/diagnosis/repairs.py   change it in small ways, and see which no test notices;
#                SAMPLE=40 SEED=1 how many, OWN=1 only the tests of its room; docs/mutants.md

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
BENCH := $(if $(PREDICTIONS),--predictions $(PREDICTIONS)) $(if $(TRUTH),--truth $(TRUTH)) $(if $(PEERS),--peers $(PEERS))

MUTANTS := --sample $(or $(SAMPLE),40) --seed $(or $(SEED),1) $(if $(OWN),--own)

.PHONY: demo test test-all test-lowest lint docs site pictures bench lock dist image mutants clean

# Each stamp is newer than pyproject.toml once its part of the environment is complete: what the demo needs, or all.
$(VENV)/.demo: EXTRA = plot,images
$(VENV)/.ready: EXTRA = dev
$(VENV)/.demo $(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or \
	  sys.exit("hoicli needs Python 3.10 or later, and $(PYTHON) is " + sys.version.split()[0] + "; make PYTHON=python3.12 names another")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRA)]'
	@touch $@

demo: $(VENV)/.demo
	@mkdir -p demo-output
	@PATH="$(abspath $(BIN)):$$PATH" sh fixtures/demo.sh demo-output

test: WHICH = -m 'not long'
test-all: WHICH = --hypothesis-profile=long
test test-all: $(VENV)/.ready
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --maxfail 20 $(WHICH)

test-lowest: LOWEST = $(VENV)-lowest
test-lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[dev]'
	$(LOWEST)/bin/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --maxfail 20 -m 'not long'

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/.ready
	$(BIN)/python -m tests.support.readme

site: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/mkdocs build --quiet --strict --config-file .mkdocs.yml

pictures: $(VENV)/.ready
	@PATH="$(abspath $(BIN)):$$PATH" sh docs/pictures/make.sh

bench: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  imagecorruptions 'setuptools<81' pycocotools faster-coco-eval hotcoco
	$(BIN)/python -m tests.bench $(BENCH)

dist: $(VENV)/.ready
	rm -rf dist
	$(BIN)/python -m pip install --quiet --disable-pip-version-check twine
	$(BIN)/python -m hatchling build
	$(BIN)/python -m twine check --strict dist/*

LOCK := fixtures/scale/requirements.lock
COMPILE = $(BIN)/uv pip compile pyproject.toml --quiet --upgrade --no-annotate --custom-compile-command 'make lock'
lock: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	echo hatchling | $(COMPILE) - --extra images --extra plot --extra cluster \
	  --generate-hashes --python-version 3.13 --python-platform linux -o $(LOCK)
	$(COMPILE) --extra dev --universal --python-version 3.10 -o tests/requirements.lock

image:
	docker build --quiet --file fixtures/scale/Dockerfile --tag hoicli .
	docker run --rm --read-only --network none hoicli doctor
	docker run --rm --read-only --network none -v "$(CURDIR)/fixtures/sample:/data:ro" hoicli eval --gt gt.jsonl.gz ours.jsonl.gz

mutants: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev-mutants]'
	nice -n 10 $(BIN)/python -m tests.mutants $(MODULE) $(MUTANTS)

clean:
	rm -rf $(VENV) $(VENV)-lowest demo-output bench-output mutants-output build dist *.egg-info
