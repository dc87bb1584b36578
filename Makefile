# Settle
# SPDX-License-Identifier: Apache-2.0

# A compiler outside PATH is looked for in the usual places.
export PATH := $(PATH):/opt/swift/usr/bin:/usr/local/swift/usr/bin:$(HOME)/.local/share/swiftly/bin

JOBS ?= $(shell nproc)
# The programs need no library beside them, so they get no run path.
RELEASE := -c release --static-swift-stdlib --disable-local-rpath
SOURCES := Package.swift Sources Tests
# The seed of one simulated run, or the number of runs: make soak SEED=7, make soak COUNT=1000
SEED ?=
COUNT ?=
# Several gateways as one: make soak CLUSTER=1 SEED=7
# Households alone, which must hold these clauses, or all: make soak HOUSEHOLD=orderOfEnds SEED=7
CLUSTER ?=
# How many seconds: make check-api FOR=600, make fuzz FOR=3600, make soak-process FOR=900, make test-cluster FOR=300, make gestures FOR=600
FOR ?=
# What to fuzz, a folder of Tests/fuzz/corpus: make fuzz TARGET=yaml
TARGET ?=
# How often: make nightly ROUNDS=300 kills a gateway, make test-under-load ROUNDS=1 runs the tests
ROUNDS ?=
# The arguments of the programs: make run ARGS="--config home/settle.yaml". Quotes group words, as in a
# shell; $, ;, * and the like are plain characters.
ARGS ?=
ifneq ($(value ARGS),)
override ARGS := $(shell .ci/quote-arguments '$(subst ','\'',$(value ARGS))')
ifneq ($(.SHELLSTATUS),0)
$(error ARGS has a quote without its end)
endif
endif
# Where make install puts things; DESTDIR goes before it, for packages.
PREFIX ?= /usr/local

.DEFAULT_GOAL := help
.PHONY: help demo demo-cluster run build test test-under-load test-cluster check-api panel-test check-home-assistant check-binaries deb check-deb app check-app release release-check soak lanes evening soak-process gestures fuzz mutants model docs nightly lint format bench bench-guard bench-record bench-build install install-deps clean

help: ## List the targets
	@echo "Turn the knob. Settle sends only where it stopped."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-21s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## Show Settle at work: a private broker, simulated devices, scripted hands
	@.build/release/settle demo $(ARGS)

demo-cluster: build ## Show three gateways as one: a slider moves, and the gateway that drives the lamp is killed
	@.ci/install-deps libnats-dev nats-server
	@Tests/cluster/demo $(ARGS)

run: build ## Run the gateway, with ARGS="--config FILE --devices DIR"
	@.build/release/settle run $(ARGS)

build: install-deps ## Build settle and settled for release, into .build/release
	@echo "Building for release (some minutes the first time)"
	@set -e; SETTLE_COMMIT=$$(git describe --always --dirty --abbrev=10 --exclude '*' 2>/dev/null || true); \
	export SETTLE_COMMIT; for product in settle settled; do swift build $(RELEASE) -j $(JOBS) --product $$product; done
	@.ci/repack-page-cache .build/release/settle .build/release/settled

test: install-deps lint ## Check the format, build without a warning, run every test
	@.ci/install-deps libnats-dev nats-server
	@echo "Building the tests, warnings as errors"
	@swift build --build-tests -j $(JOBS) -Xswiftc -warnings-as-errors
	@echo "Testing"
	@.ci/test $(ARGS)

test-under-load: install-deps ## Run every test beside 16 busy loops on two processors, ROUNDS=3 times; ARGS="--filter NAME" for some
	@.ci/install-deps libnats-dev nats-server
	@echo "Building the tests, warnings as errors"
	@swift build --build-tests -j $(JOBS) -Xswiftc -warnings-as-errors
	@ROUNDS=$(or $(ROUNDS),3) .ci/test-under-load $(ARGS)

test-cluster: build ## Kill, pause and cut off real gateways and NATS servers under load for FOR=300 seconds; SEED=7, POWER=1 cuts the power instead, ARGS="--only gateway-kill"
	@.ci/install-deps libnats-dev nats-server
	@Tests/cluster/run --for $(or $(FOR),300) $(if $(SEED),--seed $(SEED)) $(if $(POWER),--power) $(ARGS)

check-api: install-deps ## Check the HTTP API with independent programs; FOR=600 generates requests for 600 s
	@.ci/check-api $(FOR)

panel-test: ## Test the panel in headless Chromium; ARGS="-k drag" for some tests
	@.ci/install-deps chromium chromium-driver
	@swift build -j $(JOBS) --product settled -Xswiftc -warnings-as-errors
	@Tests/panel/run $(ARGS)

soak: install-deps ## Simulate gateways among faults until stopped; SEED=7 replays one run, COUNT=1000 runs so many, CLUSTER=1 runs several gateways as one, HOUSEHOLD=1 households alone
	@swift build $(RELEASE) -j $(JOBS) --product soak
	@.build/release/soak $(if $(CLUSTER),cluster) $(if $(HOUSEHOLD),household $(filter-out 1,$(HOUSEHOLD))) $(or $(SEED),$(if $(COUNT),1)) $(COUNT)

lanes: install-deps ## Compare lanes in simulated radio meshes; ARGS=vary with other assumptions too, ARGS=groups for groups, ARGS=buses for six buses, ARGS=plot writes the pictures
	@swift build $(RELEASE) -j $(JOBS) --product lanes
	@.build/release/lanes $(ARGS)

evening: install-deps ## Play an evening in a simulated house, with and without Settle; SEED=7 plays another, COUNT=200 the sums of so many
	@swift build $(RELEASE) -j $(JOBS) --product lanes
	@.build/release/lanes evening $(or $(SEED),$(if $(COUNT),100)) $(COUNT)

soak-process: build ## Run real programs under mixed load with restarts and reloads for FOR=900 seconds
	@.ci/install-deps
	@.ci/soak-process $(or $(FOR),900)

gestures: $(if $(TESTS_SETTLED),,build) ## Make random gestures against the real gateway for FOR=60 seconds; SEED=7, ARGS="--only blind-1" or ARGS=--self-test
	@Tests/gestures/run --for $(or $(FOR),60) $(if $(SEED),--seed $(SEED)) $(ARGS)

fuzz: install-deps ## Fuzz everything that reads bytes from outside; FOR=3600 seconds each, TARGET=yaml for one
	@.ci/fuzz $(or $(FOR),60) $(TARGET)

mutants: install-deps ## Check that the simulation finds deliberate mistakes in the sources
	@.ci/install-deps patch
	@.ci/mutants $(ARGS)

model: ## Visit every state of a model of the cluster's protocol, and find its deliberate mistakes; ARGS=DRIVES_UNASKED shows one
	@.ci/install-deps --only gcc libc6-dev spin
	@.ci/model $(ARGS)

check-home-assistant: install-deps ## Try the announcements with real Home Assistant cores, both formats; ARGS=current for the newest
	@swift build -j $(JOBS) --product settled
	@swift build -j $(JOBS) --product settle
	@.ci/check-home-assistant $(ARGS)

deb: build ## Build a Debian package into .build/deb, and check it with lintian
	@.ci/install-deps binutils debhelper dpkg-dev lintian
	@.ci/deb

check-deb: deb ## Install, upgrade, remove and purge the package in a new Debian root
	@.ci/install-deps mmdebstrap mosquitto-clients
	@.ci/check-deb

app: deb ## Gather the app for Home Assistant in .build/app, with the package in it: copy .build/app/settle to a Home Assistant's addons
	@rm -rf .build/app && mkdir -p .build/app/settle
	@cp -R config/home-assistant/. .build/app/settle/ && mv .build/app/settle/repository.yaml .build/app/
	@mkdir .build/app/settle/packages && cp .build/deb/*.deb .build/app/settle/packages/
	@sed -i "s/^arch: .*/arch: [$$(ls .build/deb/*.deb | sed 's/.*_//; s/.deb//; s/arm64/aarch64/' | paste -sd ,)]/" .build/app/settle/config.yaml
	@echo ".build/app/settle is the app; docs/install.md says where it goes"

check-app: app ## Play the first two minutes with the app for Home Assistant: a fake Supervisor, ingress, a browser, a slider
	@.ci/check-app

release: ## Build the packages of a release in new Debian roots, with checksums and notes, into .build/release-VERSION; DRAFT=1 needs no tag
	@.ci/install-deps --only iproute2 mmdebstrap python3
	@DRAFT=$(DRAFT) .ci/release

release-check: ## Check what must agree before a release: version, change log, tag, tree
	@.ci/release-check

check-binaries: build ## Check that installed programs are hardened as SECURITY.md says, and the links of installed pages
	@.ci/install-deps binutils
	@rm -rf .build/installed
	@.ci/install .build/installed >/dev/null
	@.ci/check-binaries .build/installed
	@.ci/check-docs --installed .build/installed/share/doc/settle

docs: ## Build the documentation of the library; a diagnostic, or an unrecorded change of its interface, is a failure
	@.ci/docs
	@.ci/check-library

nightly: install-deps ## Run the long checks, one line each; ARGS="soak crash" for some of them
	@COUNT="$(COUNT)" ROUNDS="$(ROUNDS)" FOR="$(FOR)" .ci/nightly $(ARGS)

lint: install-deps ## Check the format, rules about the sources, and the documentation
	@echo "Checking the sources"
	@swift format lint --strict --parallel --recursive $(SOURCES)
	@.ci/check-sources
	@echo "Checking the documentation"
	@.ci/check-manifest
	@.ci/check-docs

format: install-deps ## Rewrite every source file in the project's format
	@swift format --in-place --parallel --recursive $(SOURCES)

bench: bench-build ## Measure against the references in Benchmarks; QUICK=1 is shorter, ONLY=queue one part; ONLY=cluster is not in everything
	@QUICK="$(QUICK)" ONLY="$(ONLY)" python3 Benchmarks/bench

bench-guard: bench-build ## Check that counts per change have not grown; ONLY=queue is the quick part
	@ONLY="$(ONLY)" python3 Benchmarks/bench --guard

bench-record: bench-build ## Record the counts that bench-guard compares with
	@ONLY="$(ONLY)" python3 Benchmarks/bench --record

bench-build:
	@.ci/install-deps valgrind $(if $(findstring cluster,$(ONLY)),libnats-dev nats-server)
	@set -e; for product in $(if $(filter-out queue lateness,$(or $(ONLY),all)),bench settle settled,bench); do \
	  SETTLE_BENCHMARKS=1 swift build $(RELEASE) -j $(JOBS) --product $$product; done

install: build ## Install programs, manual pages and completions under PREFIX=/usr/local
	@.ci/install "$(DESTDIR)$(PREFIX)"

install-deps: ## Install the Debian packages that are missing, and check the compiler
	@.ci/install-deps

clean: ## Remove everything that was built
	@rm -rf .build
