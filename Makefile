# `make run` and `make test` need Python 3.11 or newer and make, nothing else.
# PYTHON=... names the interpreter for a new .venv; PORT=..., SANDBOX=off and every setting of
# docs/configuration.md may be given too: make run PORT=9000

.DEFAULT_GOAL := help
.PHONY: help run test test-fast test-pg16 test-engines test-previous cluster container say-what lint format audit sbom \
	requirements openapi released-names programs clients kotlin recipes swift soak fuzz bench load bench-events bench-console screenshots icons modules

BIN := .venv/bin
# What `make test-fast` never runs: whole deployments, killed processes, browsers, generated requests.
LONG_TESTS := browser faults fuzz ops proxy
FAST := $(LONG_TESTS:%=--ignore=tests/%)
SECONDS := 90
COMPILE = $(BIN)/python -m uv pip compile --quiet --python-version 3.11 --universal \
	--generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make requirements"

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: .venv/run.stamp ## start everything on this machine, until Ctrl-C
	@exec $(BIN)/python -m local.run

test: say-what .venv/dev.stamp ## run the tests, on a PostgreSQL and a Redis of their own (ARGS="-k word"); COVERAGE=on prints what they miss
ifeq ($(COVERAGE),on)
	@mkdir -p var/coverage
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -n logical $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report
else
	@exec $(BIN)/python -m pytest -n logical $(ARGS)
endif

test-fast: .venv/dev.stamp ## run the quickest tests that fit into 90 seconds, and those of changed files (SECONDS=300)
	@exec $(BIN)/python -m pytest -n logical --within $(SECONDS) $(FAST) $(ARGS)

# Only README.md says how long it takes.
say-what:
	@$(if $(ARGS),echo "make test: runs only what ARGS names",sed -n 's/^make test  *# /make test: /p' README.md)

test-pg16: .venv/dev.stamp ## run the tests on PostgreSQL 16 instead of 18
	@PGSERVER_POSTGRES_VERSION=16 exec $(BIN)/python -m pytest -n logical $(ARGS)

test-engines: .venv/dev.stamp ## break PostgreSQL 15, Redis 7, PgBouncer, RabbitMQ and a standby in mid-send (ARGS="rabbitmq")
	@exec $(BIN)/python -m tests.faults.engines.run $(ARGS)

cluster: .venv/dev.stamp ## as root: break links, machines and clocks of a cluster, then print what its messages cost (ARGS="-k vanish")
	@exec $(BIN)/python -m tests.faults.cluster.run $(ARGS)

container: .venv/run.stamp ## as root: build the image on a minimal Debian, with podman, and run a small installation from it
	@exec $(BIN)/python deploy/container/try

chart: .venv/chart.stamp .venv/dev.stamp ## check the Helm chart with Helm and the types of the Kubernetes API; needs Go
	@exec $(BIN)/python -m pytest -n 0 tests/ops/test_chart.py $(ARGS)

test-previous: .venv/dev.stamp ## run the previous version's tests of the pipeline on the schema of this one (PREVIOUS=v1.0.0)
	@exec $(BIN)/python -m tests.previous $(if $(PREVIOUS),--previous $(PREVIOUS)) $(ARGS)

lint: .venv/dev.stamp .venv/node.stamp ## check style, types, imports, migrations, settings, OpenAPI, modules, icons, scripts, templates, spelling
	@.ci/lint

format: .venv/dev.stamp .venv/node.stamp ## put the code into the form that lint asks for
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@.ci/node biome check --write .

audit: .venv/audit.stamp .venv/base.stamp ## check what is installed: its use, licences, known vulnerabilities (ARGS="--ignore-vuln ID")
	@.venv/base/bin/python .ci/installed.py
	@.venv/audit/bin/pip-licenses --python .venv/base/bin/python
	@.venv/audit/bin/python .ci/audit.py $(ARGS)

sbom: .venv/audit.stamp .venv/base.stamp ## write sbom.cdx.json, the bill of materials of production (CycloneDX)
	@.venv/audit/bin/python -W ignore::UserWarning -m cyclonedx_py environment --pyproject pyproject.toml --output-reproducible \
		--output-file sbom.cdx.json .venv/base/bin/python

soak: .venv/dev.stamp ## break everything at random moments for more than an hour (ARGS="--seed 7 --minutes 10")
	@exec $(BIN)/python -m tests.faults.soak $(ARGS)

fuzz: .venv/dev.stamp ## make 100,000 requests that the OpenAPI document allows (ARGS="--cases 20000 --seed 7")
	@exec $(BIN)/python -m tests.fuzz.long $(ARGS)

bench: .venv/run.stamp .venv/peers.stamp ## measure every figure, or FIGURE=web alone, and other libraries (ARGS="--rounds 5")
	@exec $(BIN)/python -m bench $(FIGURE) $(ARGS)

load: .venv/run.stamp .venv/load.stamp ## make mixed requests at a set rate, then at twice what the service can do (ARGS="--rate 100 --seconds 60")
	@exec $(BIN)/python -m bench.load $(ARGS)

bench-events: .venv/run.stamp ## print clicks a second that one web process counts (ARGS="--devices 2000")
	@exec $(BIN)/python -m bench.events $(ARGS)

bench-console: .venv/run.stamp ## print what the console's pages cost (ARGS="--subscribers 1000000")
	@exec $(BIN)/python -m bench.console $(ARGS)

screenshots: .venv/dev.stamp ## take the pictures of the console in docs/screenshots again (ARGS="compose")
	@exec $(BIN)/python -m tests.browser.screenshots $(ARGS)

modules: .venv/dev.stamp ## write docs/modules.md and docs/modules-pushsvc.md, after a change of a module's first sentence
	@$(BIN)/python .ci/modules.py docs

icons: .venv/dev.stamp ## write the console's font of icons, after a change of .ci/icons.py or of the theme
	@$(BIN)/python .ci/icons.py pushsvc/static/console/icons.woff2

texts: .venv/dev.stamp ## add new texts of the console to pushsvc/locale, and compile the translations
	@. .ci/environment && $(BIN)/python .ci/texts.py

openapi: .venv/dev.stamp .venv/clients.stamp ## write docs/openapi.yaml from the code, and from it the methods and types of clients/
	@. .ci/environment && $(BIN)/python manage.py spectacular --validate --fail-on-warn --file docs/openapi.yaml
	@$(BIN)/python .ci/client_code.py clients
	@.ci/client-types clients/typescript

released-names: .venv/dev.stamp ## before a release: add its operations and schemas to the names that lint keeps
	@$(BIN)/python .ci/released_names.py --add

programs: ## as root, on Debian: install the programs, generators and tools without which tests are skipped
	@.ci/programs
	@[ -d .venv/clients/go ] || rm -f .venv/clients.stamp # Go came later than the generators
	@$(MAKE) --no-print-directory .venv/node.stamp .venv/clients.stamp .venv/audit.stamp
	@$(MAKE) --no-print-directory .venv/kotlin.stamp || \
		echo "Maven could not install the compiler: \`make kotlin\` cannot test clients/android" >&2
	@$(MAKE) --no-print-directory .venv/chart.stamp || \
		echo "Go could not build Helm: the tests of deploy/kubernetes that need it are skipped" >&2

clients: .venv/clients.stamp ## install the generators of clients, without which their tests are skipped

# Maven installs a compiler, and Android's classes and Robolectric to run the app on: about 600 MB.
kotlin: .venv/kotlin.stamp .venv/dev.stamp ## compile clients/android and the Kotlin of docs/fcm.md, and run them against the service (ARGS="-k offline")
	@exec $(BIN)/python -m pytest -n 0 tests/android $(ARGS)

# npm installs Angular and Next: about 600 MB.
recipes: .venv/recipes.stamp .venv/dev.stamp ## build the Angular and the Next app of docs/recipes.md, and run them in Chromium and Firefox (ARGS="-k Next")
	@RECIPES=yes exec $(BIN)/python -m pytest -n 0 tests/browser/sdk/test_recipes.py tests/browser/firefox/test_firefox_recipes.py $(ARGS)

swift: .venv/dev.stamp ## as root: compile and test clients/ios on a minimal Debian, against the service (ARGS="-k token")
	@exec $(BIN)/python -m tests.clients.swift.run $(ARGS)

requirements: .venv/dev.stamp .venv/node.stamp ## pin requirements/*.txt from *.in, and .ci/{javascript,clients,recipes}
	@for name in uv base telemetry images run dev audit node clients peers load; do $(COMPILE) requirements/$$name.in -o requirements/$$name.txt || exit 1; done
	@for packages in javascript clients recipes; do (cd .ci/$$packages && npm_config_omit_lockfile_registry_resolved=true \
		PATH="$(CURDIR)/.venv/node/bin:$$PATH" npm install --package-lock-only --silent --no-audit --no-fund) || exit 1; done

.venv/node.stamp: .ci/javascript/package-lock.json
.venv/clients.stamp: .ci/clients/package-lock.json .ci/clients/go.sum

.venv/kotlin.stamp: .ci/kotlin/pom.xml
	@rm -rf .venv/kotlin
	@mvn --quiet --batch-mode --strict-checksums --file .ci/kotlin/pom.xml dependency:copy-dependencies \
		-DoutputDirectory="$(CURDIR)/.venv/kotlin"
	@touch $@

# Helm and the types of the Kubernetes API, from Go's module proxy: three CPU-minutes, once. One module, so that they
# share packages; without the optimizer, which takes longer than what they do.
.venv/chart.stamp: .ci/chart/go.mod .ci/chart/go.sum .ci/chart/main.go
	@cd .ci/chart && for program in "helm helm.sh/helm/v3/cmd/helm" "manifests ."; do set -- $$program; \
		go build -gcflags='all=-N -l' -ldflags='-s -w' -o "$(CURDIR)/.venv/chart/$$1" "$$2" || exit 1; done
	@touch $@

.venv/recipes.stamp: .ci/recipes/package-lock.json .venv/clients.stamp
	@rm -rf .venv/recipes && mkdir .venv/recipes && cp .ci/recipes/package*.json .venv/recipes
	@cd .venv/recipes && PATH="$(CURDIR)/.venv/clients/bin:$$PATH" npm ci --silent --no-audit --no-fund
	@touch $@

.venv/%.stamp: requirements/uv.txt requirements/%.txt
	@.ci/install $*
	@touch $@
