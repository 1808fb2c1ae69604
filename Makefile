# Two commands are all that a newcomer needs: `make demo` and `make test`.
# Everything is installed into this folder and nowhere else: .venv, target and out, packages of npm beside what they are
# for, and clients of other projects in tests/clients.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/.locked
DEV_LOCKED := $(VENV)/.locked-dev
# What makes the site of the documentation; nothing else needs it.
SITE_VENV := target/site-venv
SITE_LOCKED := $(SITE_VENV)/.locked
# How a compiled extension is put into the virtual environment, with the versions of Cargo.lock: into ours, whichever else
# the shell of who calls has activated.
DEVELOP := env -u CONDA_PREFIX VIRTUAL_ENV="$(CURDIR)/$(VENV)" PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
	$(BIN)/maturin develop --profile quick --locked
# A step of set-up with a line of progress: title, lines of output that make it whole, which lines count.
STEP := tools/step.sh

.PHONY: help
help: ## What there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: weir ## Sets everything up and runs the main job: RRUL on a cable and an LTE line
	@tools/demo.sh

.PHONY: test
test: export PYTHONDONTWRITEBYTECODE := # empty: thousands of processes load the same modules
test: setup ## Sets everything up and passes all tests: Rust, Python
	@# Random inputs are the same each time here; `cargo test` alone draws others. Dependencies are those of `make weir`,
	@# compiled already: the same profile, and with `weir-py` in the workspace, which has no tests, the same features.
	@tools/test.sh $(BIN)/pytest env PROPTEST_RNG_SEED=1 \
		$(BIN)/python tools/rust_tests.py --config tools/tests.toml --profile quick --workspace --locked

.PHONY: docs
docs: setup ## Writes what is declared in the code: columns and names into docs/, scenarios and results as types of Python
	@$(BIN)/python tests/record_page.py
	@$(BIN)/python tests/list_pages.py
	@$(BIN)/python tests/scenario_models.py
	@$(BIN)/python tests/method_results.py

.PHONY: cases
cases: setup ## Runs every case that a shaper must cope with, and checks what it asserts
	@tools/cases.sh $(BIN)/weir

# Which lines, by number.
FIRST := 1
COUNT := 20

.PHONY: random-lines
random-lines: setup ## A shaper on lines, loads and events drawn at random, beside none: FIRST=1 COUNT=20, ten seconds a line
	@$(BIN)/python tools/random_lines.py $(BIN)/weir $(FIRST) $(COUNT)

.PHONY: shape-safety
shape-safety: setup ## As in `make test`, for longer: a shaper that stood still, lost its guard, probes or device
	@WEIR_LONG=1 $(BIN)/pytest tests/test_shape_safety.py

# How long, and which seed; a new one without.
SECONDS := 300
SEED :=

.PHONY: torture
torture: setup ## Clumsy and hostile use of every command and option: SECONDS=300, SEED=1 for what failed
	@PYTHONPATH="$(CURDIR)/tests" $(BIN)/python -m torture --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# What rustdoc makes pages of; a link in them that leads nowhere ends it.
DOCUMENTED := --no-deps --workspace --exclude weir-py --exclude weir-benches --locked

.PHONY: lint
lint: setup ## rustfmt, clippy, rustdoc, ruff, mypy; warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(DOCUMENTED) --quiet
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/mypy tests
	$(BIN)/python -m mypy.stubtest weirlab._native
	@tools/check-page.sh

.PHONY: check-wasm
check-wasm: ## Checks that the reader of scenarios and the simulator compile to WebAssembly (needs a library for it)
	@tools/check-wasm.sh

.PHONY: format
format: setup ## Formats all code
	cargo fmt --all
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.PHONY: bench
bench: ## Speed and memory of the simulator, release build
	cargo run --release --locked --quiet -p weir-benches --bin simulator

.PHONY: bench-instructions
bench-instructions: ## Instructions and cache misses a packet, and their ratios to what docs/performance.md records (needs valgrind)
	cargo run --release --locked --quiet -p weir-benches --bin instructions

.PHONY: bench-qdiscs
bench-qdiscs: ## Nanoseconds a packet in every queue discipline
	cargo run --release --locked --quiet -p weir-benches --bin qdiscs

.PHONY: bench-lab
bench-lab: ## Exactness and ceilings of the lab, beside the kernel, and 50 at once: ten minutes on a quiet machine
	cargo run --release --locked --quiet -p weir-benches --bin lab

.PHONY: bench-peers
bench-peers: ## The simulator beside htsim, the same dumbbells in turn (needs g++, and htsim's source: HTSIM=FOLDER, or git)
	@tools/bench-peers.sh

.PHONY: bench-serve
bench-serve: ## A download from the server beside iperf3, in turn, and 200 tests at once
	cargo build --release --locked --quiet -p weir-agent
	cargo run --release --locked --quiet -p weir-benches --bin serve

.PHONY: bench-shape
bench-shape: ## What the userspace shaper carries, costs and adds (needs iperf3, iproute2 and ethtool)
	cargo run --release --locked --quiet -p weir-benches --bin shape

.PHONY: agent
agent: ## weir-agent, the server as one static program, into out/
	@tools/agent.sh

# Architectures for routers: x86_64 aarch64 armv7 mips mipsel; this machine's if none is named.
ARCH :=

.PHONY: agent-static
agent-static: ## weir-agent for routers, static and without the server, into out/: ARCH="aarch64 mips" for others
	@tools/agent-static.sh $(ARCH)

.PHONY: wheel
wheel: ## A wheel for older systems too, with which users compile nothing, into out/wheels, and tries it
	@tools/wheel.sh

.PHONY: test-router
test-router: ## Tests of packets, numbers and the controller on another processor, under an emulator: big-endian mips, or ARCH=...
	@tools/agent-static.sh --test $(ARCH)

.PHONY: page
page: ## Compiles the server's browser page (needs npm); what comes of it is part of the repository
	cd crates/serve/page && npm ci --silent --no-audit --no-fund && npm run --silent check && npm run --silent build

.PHONY: licences
licences: ## Writes anew whose licences the programs carry along; no target has crates that x86_64 has not
	@python3 tools/licences.py x86_64-unknown-linux-gnu weir-agent weir-py >LICENSES-THIRD-PARTY.txt

.PHONY: viewer
viewer: ## Compiles the viewer of records (needs npm); what comes of it is part of the repository
	cd viewer && npm ci --silent --no-audit --no-fund && npm run --silent check && npm run --silent build

.PHONY: playground
playground: ## The simulator as a page for browsers, into out/playground (needs npm and a library of Rust for WebAssembly)
	@tools/wasm.sh
	@cd viewer && npm ci --silent --no-audit --no-fund && npm run --silent check && \
		node playground.mjs ../target/playground ../python/weirlab/data/traces ../out/playground

.PHONY: rustdoc
rustdoc:
	@RUSTDOCFLAGS="-D warnings" cargo doc $(DOCUMENTED) --quiet --target-dir target/rustdoc

.PHONY: site
site: playground setup rustdoc $(SITE_LOCKED) ## The documentation as a site with the playground, into out/site
	@rm -rf target/site-studies
	@$(BIN)/python site/studies.py target/site-studies
	@$(BIN)/python site/assemble.py out/playground target/site-studies target/rustdoc/doc target/site
	@NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/python -m mkdocs build --quiet --strict --config-file site/mkdocs.yml
	@echo "out/site: look at it with  python3 -m http.server --directory out/site --bind 127.0.0.1"

.PHONY: test-site
test-site: site ## Looks at the playground and the site in Chromium, and holds every row of the playground against native runs
	@WEIR_PLAYGROUND=out/playground WEIR_SITE=out/site $(BIN)/pytest tests/test_playground.py tests/test_site_pages.py

.PHONY: kernel
kernel: ## A Linux that runs as a process, for `weir run --world kernel`, into target/kernel: 5 to 9 minutes
	@tools/kernel.sh

.PHONY: test-kernel
test-kernel: setup ## Runs in the world kernel, with the kernel of `make kernel` or WEIR_KERNEL=PATH
	@WEIR_KERNEL="$${WEIR_KERNEL:-$(CURDIR)/target/kernel/linux}" $(BIN)/pytest tests/test_kernel_runs.py

.PHONY: browser
browser: ## Installs Chromium and axe, by which the tests look at the pages of reports
	@tools/browser.sh

.PHONY: page-test
page-test: ## Clicks through the browser page in Chromium (needs npm and chromium)
	cargo build --locked --quiet -p weir-agent
	cd crates/serve/page && npm ci --silent --no-audit --no-fund && \
		WEIR_AGENT="$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/weir-agent" npm test --silent

.PHONY: screenshots
screenshots: setup ## Makes the pictures of pages in docs/images anew, from runs of this code (needs `make browser`)
	@$(BIN)/python tools/screenshots.py

.PHONY: clients
clients: ## Installs the speed-test clients of other projects that the tests run against the server
	@tools/clients.sh

.PHONY: weir
weir: $(LOCKED) ## .venv/bin/weir: virtual environment, the locked packages that it runs on, compiled extension
	@$(STEP) 'Compiling Weir' 181 '^ +Compiling ' -- $(DEVELOP)

.PHONY: setup
setup: weir $(DEV_LOCKED) ## The same, and what tests and linters need

# The first time most of what `weir` compiles is compiled here, while packages come: for `setup` those of tests and linters too.
LOCK := requirements.lock
setup: LOCK := requirements-dev.lock
$(LOCKED): requirements.lock tools/check-tools.sh tools/install.sh
	@tools/check-tools.sh
	@$(STEP) 'Python packages into $(VENV), and compiling Weir' 210 '^Collecting |^ +Compiling ' -- \
		tools/install.sh $(VENV) $(LOCK)
	@touch $@

$(DEV_LOCKED): requirements-dev.lock $(LOCKED)
	@$(STEP) 'Python packages for tests and linters' 90 '^(Collecting|Requirement already) ' -- \
		$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --no-compile -r requirements-dev.lock
	@$(BIN)/python -m pip check --disable-pip-version-check >/dev/null
	@touch $@

$(SITE_LOCKED): site/requirements.lock
	@test -x $(SITE_VENV)/bin/python || python3 -m venv $(SITE_VENV)
	@$(SITE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r site/requirements.lock
	@touch $@

.PHONY: lock
lock: ## Writes the lock files anew (needs uv)
	cargo update
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" pyproject.toml requirements.in -o requirements.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" -c requirements.lock pyproject.toml requirements.in requirements-dev.in \
		-o requirements-dev.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" site/requirements.in -o site/requirements.lock

.PHONY: clean
clean: ## Removes everything that was made
	rm -rf $(VENV) target out python/weirlab/_native*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf {viewer,crates/serve/page,tests/clients}/node_modules tests/clients/{bin,.flent,.venv}
