# The commands of the house; `make` alone lists them. Everything runs inside .venv, which each target makes if needed.
SHELL := bash
.DEFAULT_GOAL := help
BIN := .venv/bin
CODE := engine service api_tests scripts
ARGS ?=

.PHONY: help install serve test pytest check format lock bench chaos \
        check-format check-lint check-types check-imports check-lines check-leftovers check-generated check-container check-shell

help: ## what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: ## .venv with graphgate, the capture worker and the development tools
	@scripts/install.sh worker,dev

serve: ## the API with a capture worker on http://127.0.0.1:8000 (ARGS="--port 9000")
	@scripts/install.sh worker
	@exec $(BIN)/graphgate serve $(ARGS)

test: install ## every check, then every test (ARGS="-k words" chooses tests)
	@scripts/install_system.sh
	@$(MAKE) --no-print-directory --keep-going check
	@$(MAKE) --no-print-directory pytest

pytest: install ## the tests alone
	@$(BIN)/pytest $(ARGS)

check: check-format check-lint check-types check-imports check-lines check-leftovers check-generated check-container check-shell ## all checks that are not tests

check-format: install ## formatting
	$(BIN)/ruff format --check --quiet $(CODE)

check-lint: install ## lint rules
	$(BIN)/ruff check --quiet $(CODE)

check-types: install ## types, strictly
	$(BIN)/mypy $(CODE)

check-imports: install ## which package may import which
	$(BIN)/lint-imports --no-logo

check-lines: install ## no source file over 400 lines
	$(BIN)/python scripts/check_lines.py

check-leftovers: install ## nothing of one machine, no secrets, no unfinished notes
	$(BIN)/python scripts/check_leftovers.py

check-generated: install ## generated files are what their scripts make
	$(BIN)/python scripts/check_generated.py

check-container: install ## Dockerfile and compose file
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml

check-shell: install ## shell scripts
	$(BIN)/shellcheck .ci/run scripts/*.sh

format: install ## rewrite the code as check-format and check-lint want it
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: install ## speed, side by side in one run (ARGS="--only captures" chooses sections)
	@$(BIN)/python scripts/bench.py $(ARGS)

chaos: install ## kill everything while captures run, ten seeds (ARGS="3 7" chooses)
	@$(BIN)/python scripts/chaos.py $(ARGS)

lock: ## write constraints.txt anew (ARGS=--keep keeps the pins there are)
	scripts/lock.sh $(ARGS)
