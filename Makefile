# All do all their own set-up on a machine with Python 3.11+ and nothing else.
PYTHON ?= python3

.PHONY: run test test-fast coverage doctor translations lock audit secrets sbom release

run:
	@$(PYTHON) -m rag.launch serve

test:
	@$(PYTHON) -m rag.launch test

# For work in between: no browser, no kills, nothing in processes of its own.
test-fast:
	@$(PYTHON) -m rag.launch test --fast

# Counting which lines ran takes two thirds more processor time than running them.
coverage:
	@$(PYTHON) -m rag.launch test --cov --cov-report=term:skip-covered

doctor:
	@$(PYTHON) -m rag.launch doctor

# Sentences of the code and the templates into the catalogues that translators edit, rag/locales/*/LC_MESSAGES/*.po.
translations:
	@$(PYTHON) -m rag.launch translations

# After a change of a requirements.in: everything it needs in turn, with hashes, into the .txt beside it.
lock:
	@$(PYTHON) -m rag.launch lock

# Known vulnerabilities of the locked packages, and secrets in files under version control.
audit:
	@$(PYTHON) -m rag.launch audit

# The half of it that needs no network; CI runs it before the tests.
secrets:
	@$(PYTHON) -m rag.launch secrets

# dist/hr-assistant-VERSION.cdx.json: what a release consists of (CycloneDX), from the lock.
sbom:
	@$(PYTHON) -m rag.launch sbom

# dist/: the source of the present commit, its bill of materials, where both came from (SLSA), and their sums.
release:
	@$(PYTHON) -m rag.launch release
